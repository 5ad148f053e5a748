import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { asterisks, MULTIPLE_MAX, OVERRIDES_MAX } from "../../rules/override-patterns.ts";
import { exampleOverride, exampleOverrideInput } from "../examples.ts";
import { Namespace, NewOverrideIdentifier, OverrideDuration, OverrideLimit } from "./fields.ts";

export const setOverride = mutation("ratelimits.setOverride", {
  aliases: ["ratelimit.setOverride"],
  summary: "Set what holds for some identifiers",
  description:
    "From the next call on, `limit` and `duration` of the override hold instead of those of the call. Of several that " +
    "match, the one for exactly this identifier holds, then the pattern with the most literal characters, then the " +
    "oldest. Setting the same identifier or pattern again changes it and keeps its id. A namespace has at most " +
    `${OVERRIDES_MAX} overrides, of which at most ${MULTIPLE_MAX} have more than one \`*\`.`,
  permissions: ["ratelimits.{namespaceId}.set_override"],
  input: z.strictObject({
    namespace: Namespace,
    identifier: NewOverrideIdentifier,
    limit: OverrideLimit,
    duration: OverrideDuration,
  }),
  output: z.strictObject({ overrideId: z.string() }),
  problems: ["namespace_not_found", "override_limit_reached"],
  examples: [
    {
      summary: "More for paying customers",
      input: exampleOverrideInput,
      output: { overrideId: exampleOverride.overrideId },
    },
    {
      summary: "Nothing for one of them",
      input: { ...exampleOverrideInput, identifier: "customer_banned", limit: 0 },
      output: { overrideId: "rlor_q8Zt1yXw3vBnMkLj" },
    },
    {
      summary: "A namespace that is not there",
      input: { ...exampleOverrideInput, namespace: "letters" },
      problem: "namespace_not_found",
    },
  ],
}).handle(async ({ namespace: nameOrId, ...override }, { store, principal, random, now, invalidate, audit, fail }) => {
  const namespace = await store.namespaces.find(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  principal.authorize(`ratelimits.${namespace.id}.set_override`);
  const { identifier } = override;
  if (!(await store.overrides.find(namespace.id, identifier))) {
    const { all, multiple } = await store.overrides.count(namespace.id);
    if (all >= OVERRIDES_MAX) return fail("override_limit_reached", tooMany(OVERRIDES_MAX, "overrides"));
    if (asterisks(identifier) > 1 && multiple >= MULTIPLE_MAX) {
      return fail("override_limit_reached", tooMany(MULTIPLE_MAX, "patterns with more than one asterisk"));
    }
  }
  const overrideId = await store.overrides.put(namespace.id, override, random, now);
  invalidate.namespace(namespace.id);
  audit([overrideId, namespace.id], override);
  return { overrideId };
});

function tooMany(max: number, what: string): string {
  return `The namespace has ${max} ${what}, which is the most. Delete some of them first.`;
}
