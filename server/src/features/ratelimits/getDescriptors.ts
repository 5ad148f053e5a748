import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { exampleDescriptors, exampleNamespace } from "../../platform/vocabulary/examples.ts";
import { Namespace } from "./fields.ts";
import { DescriptorsReader } from "./statements/descriptors.ts";
import { NamespaceReader } from "./statements/namespaces.ts";

export const getDescriptors = query("ratelimits.getDescriptors", {
  summary: "Get the descriptors of a namespace",
  description:
    "Returns the tree of limits that Envoy's rate limit service applies in the namespace, without members that say nothing. " +
    "A namespace without a tree has an empty list.",
  permissions: ["ratelimits.{namespaceId}.read_override"],
  input: z.strictObject({ namespace: Namespace }),
  output: z.strictObject({
    namespaceId: z.string(),
    namespace: z.string().describe("Name of the namespace."),
    descriptors: z
      .array(z.record(z.string(), z.unknown()))
      .describe("The tree, as the configuration of envoyproxy/ratelimit writes it."),
    atomic: z.boolean().describe("Whether a call charges all its descriptors or none."),
    metadata: z.boolean().describe("Whether answers have dynamic metadata."),
    updatedAt: z
      .int()
      .optional()
      .describe("Time of its last change, Unix time in milliseconds. Absent: there is no tree."),
  }),
  problems: ["namespace_not_found"],
  examples: [
    {
      summary: "Limits of each address, and of logins",
      input: { namespace: exampleNamespace.name },
      output: {
        namespaceId: exampleNamespace.id,
        namespace: exampleNamespace.name,
        descriptors: exampleDescriptors,
        atomic: false,
        metadata: false,
        updatedAt: exampleNamespace.createdAt,
      },
    },
    { summary: "A namespace that does not exist", input: { namespace: "letters" }, problem: "namespace_not_found" },
  ],
}).handle(async ({ namespace: nameOrId }, { store, principal, fail }) => {
  const namespace = await store.of(NamespaceReader).find(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  principal.authorize(`ratelimits.${namespace.id}.read_override`);
  const tree = await store.of(DescriptorsReader).find(namespace.id);
  return {
    namespaceId: namespace.id,
    namespace: namespace.name,
    descriptors: tree ? JSON.parse(tree.descriptors) : [],
    atomic: tree?.atomic === 1,
    metadata: tree?.metadata === 1,
    ...(tree && { updatedAt: tree.updated_at }),
  };
});
