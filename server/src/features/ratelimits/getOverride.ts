import { z } from "zod";
import { compileOverrides, Overrides } from "../../../../engine/src/rules/override-patterns.ts";
import { query } from "../../platform/rpc/operation.ts";
import { exampleNamespace, exampleOverride } from "../../platform/vocabulary/examples.ts";
import { Namespace, OverrideIdentifier } from "./fields.ts";
import { OverrideOutput, toOverrideOutput } from "./record.ts";
import { NamespaceReader } from "./statements/namespaces.ts";
import { OverrideReader } from "./statements/overrides.ts";

export const getOverride = query("ratelimits.getOverride", {
  aliases: ["ratelimit.getOverride"],
  summary: "Get the override of an identifier",
  description:
    "Returns the override that applies to calls with this identifier: one with the same identifier, or else a matching " +
    "pattern. A pattern as identifier returns the override with this pattern.",
  permissions: ["ratelimits.{namespaceId}.read_override"],
  input: z.strictObject({ namespace: Namespace, identifier: OverrideIdentifier }),
  output: OverrideOutput,
  problems: ["namespace_not_found", "override_not_found"],
  examples: [
    {
      summary: "The override of a customer",
      input: { namespace: exampleNamespace.name, identifier: "customer_42" },
      output: exampleOverride,
    },
    {
      summary: "An identifier without an override",
      input: { namespace: exampleNamespace.name, identifier: "user_1" },
      problem: "override_not_found",
    },
  ],
}).handle(async ({ namespace: nameOrId, identifier }, { store, principal, fail }) => {
  const namespace = await store.of(NamespaceReader).find(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  // An override that the caller may not read must look like one that does not exist.
  if (!principal.may(`ratelimits.${namespace.id}.read_override`)) return fail("override_not_found");
  const overrides = store.of(OverrideReader);
  const exact = await overrides.find(namespace.id, identifier);
  if (exact) return toOverrideOutput(namespace.name, exact);
  const all = await overrides.all(namespace.id);
  const compiled = await compileOverrides(all.map((row) => ({ ...row, createdAt: row.created_at })));
  const match = new Overrides(compiled).find(identifier);
  return match ? toOverrideOutput(namespace.name, match) : fail("override_not_found");
});
