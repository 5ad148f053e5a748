import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleNamespace, exampleOverride } from "../../platform/vocabulary/examples.ts";
import { Empty } from "../../platform/vocabulary/schema.ts";
import { Namespace, OverrideIdentifier } from "./fields.ts";
import { NamespaceWriter } from "./statements/namespaces.ts";
import { OverrideWriter } from "./statements/overrides.ts";

export const deleteOverride = mutation("ratelimits.deleteOverride", {
  aliases: ["ratelimit.deleteOverride"],
  summary: "Delete an override",
  description:
    "The next call uses its own `limit` and `duration` again. The identifier must equal that of the override. An " +
    "identifier that only matches a pattern deletes nothing.",
  permissions: ["ratelimits.{namespaceId}.delete_override"],
  input: z.strictObject({ namespace: Namespace, identifier: OverrideIdentifier }),
  output: Empty,
  problems: ["namespace_not_found", "override_not_found"],
  examples: [
    {
      summary: "Delete an override",
      input: { namespace: exampleNamespace.name, identifier: exampleOverride.identifier },
      output: {},
    },
    {
      summary: "An identifier that a pattern matches",
      input: { namespace: exampleNamespace.name, identifier: "customer_42" },
      problem: "override_not_found",
    },
  ],
}).handle(async ({ namespace: nameOrId, identifier }, { store, principal, invalidate, audit, fail }) => {
  const namespace = await store.of(NamespaceWriter).find(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  principal.authorize(`ratelimits.${namespace.id}.delete_override`);
  const overrides = store.of(OverrideWriter);
  const override = await overrides.find(namespace.id, identifier);
  if (!override) return fail("override_not_found");
  await overrides.remove(override.id);
  invalidate.namespace(namespace.id);
  const data = { overrideId: override.id, namespaceId: namespace.id, identifier };
  audit([override.id, namespace.id], { identifier }, [{ type: "override.deleted", objectId: override.id, data }]);
  return {};
});
