import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleDescriptors, exampleNamespace } from "../../platform/vocabulary/examples.ts";
import { Empty } from "../../platform/vocabulary/schema.ts";
import { Descriptors, storedTree } from "./descriptors.ts";
import { Namespace } from "./fields.ts";
import { DescriptorsWriter } from "./statements/descriptors.ts";
import { NamespaceWriter } from "./statements/namespaces.ts";

const OLDER_PROGRAMS =
  "Another node runs an earlier release, which would not apply descriptors, or is starting. " +
  "Upgrade every node, then send the request again.";

export const setDescriptors = mutation("ratelimits.setDescriptors", {
  summary: "Set the descriptors of a namespace",
  description:
    "Replaces the tree of limits that Envoy's rate limit service applies in the namespace, in the form of the configuration of " +
    "envoyproxy/ratelimit. A call's descriptor has the limit of the descriptor of the tree that matches all its entries, level by " +
    "level: the one with the same value, else the first whose value ends with `*` and matches, else the one without a value. " +
    "A limit that the call brings goes first; an override with exactly its identifier applies where the tree has no " +
    "limit. An empty list removes the tree. `ratelimits.limit` does not use it.",
  permissions: ["ratelimits.{namespaceId}.set_override"],
  input: z.strictObject({
    namespace: Namespace,
    descriptors: Descriptors,
    atomic: z
      .boolean()
      .default(false)
      .describe(
        "Whether a call charges all its descriptors or none. Otherwise each is charged, also when another one is over.",
      ),
    metadata: z
      .boolean()
      .default(false)
      .describe("Whether answers have dynamic metadata with the domain, the descriptors and the quotas that are over."),
  }),
  output: Empty,
  problems: ["namespace_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Limits of each address, and of logins",
      input: { namespace: exampleNamespace.name, descriptors: exampleDescriptors },
      output: {},
    },
    {
      summary: "A namespace that does not exist",
      input: { namespace: "letters", descriptors: [] },
      problem: "namespace_not_found",
    },
  ],
}).handle(async ({ namespace: nameOrId, descriptors, atomic, metadata }, context) => {
  const { store, principal, now, invalidate, audit, fail } = context;
  const namespace = await store.of(NamespaceWriter).findForUpdate(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  const { id: namespaceId, name } = namespace;
  principal.authorize(`ratelimits.${namespaceId}.set_override`);
  const trees = store.of(DescriptorsWriter);
  if (!(await trees.accepts())) return fail("precondition_failed", OLDER_PROGRAMS);
  const isEmpty = descriptors.length === 0;
  const tree = isEmpty
    ? null
    : ({ descriptors: storedTree(descriptors), atomic: atomic ? 1 : 0, metadata: metadata ? 1 : 0 } as const);
  await trees.replace(namespaceId, tree, now);
  invalidate.namespace(namespaceId);
  // The whole tree would be too long for the log.
  audit([namespaceId], { name, descriptors: descriptors.length, atomic, metadata }, [
    { type: "descriptors.set", objectId: namespaceId, data: { namespaceId, name } },
  ]);
  return {};
});
