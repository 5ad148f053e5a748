import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleNamespace } from "../../platform/vocabulary/examples.ts";
import { Empty } from "../../platform/vocabulary/schema.ts";
import { Namespace } from "./fields.ts";
import { NamespaceWriter } from "./statements/namespaces.ts";

export const deleteNamespace = mutation("ratelimits.deleteNamespace", {
  aliases: ["ratelimit.deleteNamespace"],
  summary: "Delete a rate limit namespace and its overrides",
  description: "The name can be used again at once: the next call with it creates a new namespace with empty counters.",
  permissions: ["ratelimits.{namespaceId}.delete_namespace"],
  input: z.strictObject({ namespace: Namespace }),
  output: Empty,
  problems: ["namespace_not_found"],
  examples: [
    { summary: "Delete a namespace", input: { namespace: exampleNamespace.name }, output: {} },
    { summary: "A namespace that does not exist", input: { namespace: "letters" }, problem: "namespace_not_found" },
  ],
}).handle(async ({ namespace: nameOrId }, { store, principal, now, invalidate, audit, fail }) => {
  const namespaces = store.of(NamespaceWriter);
  const namespace = await namespaces.findForUpdate(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  principal.authorize(`ratelimits.${namespace.id}.delete_namespace`);
  await namespaces.markDeleted(namespace.id, now);
  invalidate.namespace(namespace.id);
  const { id: namespaceId, name } = namespace;
  audit([namespaceId], { name }, [{ type: "namespace.deleted", objectId: namespaceId, data: { namespaceId, name } }]);
  return {};
});
