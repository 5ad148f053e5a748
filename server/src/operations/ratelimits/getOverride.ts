import { z } from "zod";
import { query } from "../../rpc/operation.ts";
import { compileOverrides, Overrides } from "../../rules/override-patterns.ts";
import { exampleNamespace, exampleOverride } from "../examples.ts";
import { Namespace, OverrideIdentifier } from "./fields.ts";
import { OverrideOutput, overrideRecord } from "./record.ts";

export const getOverride = query("ratelimits.getOverride", {
  aliases: ["ratelimit.getOverride"],
  summary: "Get the override that holds for an identifier",
  description:
    "The one that a call with this identifier would meet: set for exactly this text, or a pattern that matches. Asking " +
    "for a pattern gives the override that was set for it.",
  permissions: ["ratelimits.{namespaceId}.read_override"],
  input: z.strictObject({ namespace: Namespace, identifier: OverrideIdentifier }),
  output: OverrideOutput,
  problems: ["namespace_not_found", "override_not_found"],
  examples: [
    {
      summary: "What holds for a customer?",
      input: { namespace: exampleNamespace.name, identifier: "customer_42" },
      output: exampleOverride,
    },
    {
      summary: "Nobody's override",
      input: { namespace: exampleNamespace.name, identifier: "user_1" },
      problem: "override_not_found",
    },
  ],
}).handle(async ({ namespace: nameOrId, identifier }, { store, principal, fail }) => {
  const namespace = await store.namespaces.find(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  // What the caller may not read is as absent as what never was.
  if (!principal.may(`ratelimits.${namespace.id}.read_override`)) return fail("override_not_found");
  const exact = await store.overrides.find(namespace.id, identifier);
  if (exact) return overrideRecord(namespace.name, exact);
  const all = await store.overrides.all(namespace.id);
  const compiled = await compileOverrides(all.map((row) => ({ ...row, createdAt: row.created_at })));
  const holding = new Overrides(compiled).find(identifier);
  return holding ? overrideRecord(namespace.name, holding) : fail("override_not_found");
});
