import { z } from "zod";
import { asterisks, MULTIPLE_MAX, OVERRIDES_MAX } from "../../../../engine/src/rules/override-patterns.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { changedValues } from "../../platform/vocabulary/changed-values.ts";
import { exampleOverride, exampleOverrideInput } from "../../platform/vocabulary/examples.ts";
import {
  Namespace,
  NewOverrideIdentifier,
  OverrideDuration,
  OverrideLimit,
  OverrideMode,
  OverrideShadow,
} from "./fields.ts";
import { acceptShadow } from "./shadow.ts";
import { NamespaceWriter } from "./statements/namespaces.ts";
import { OverrideWriter } from "./statements/overrides.ts";

export const setOverride = mutation("ratelimits.setOverride", {
  aliases: ["ratelimit.setOverride"],
  summary: "Set an override",
  description:
    "The `limit` and `duration` of the override, and its `mode` if it has one, replace those of the next and later " +
    "calls. If several overrides match, the one with the same identifier applies, then the pattern with the most literal " +
    "characters, then the oldest. Setting the same identifier or pattern again updates the override and keeps its id. A " +
    `namespace has at most ${OVERRIDES_MAX} overrides, of which at most ${MULTIPLE_MAX} have more than one \`*\`.`,
  permissions: ["ratelimits.{namespaceId}.set_override"],
  input: z.strictObject({
    namespace: Namespace,
    identifier: NewOverrideIdentifier,
    limit: OverrideLimit,
    duration: OverrideDuration,
    mode: OverrideMode.optional(),
    shadow: OverrideShadow.optional(),
  }),
  output: z.strictObject({ overrideId: z.string() }),
  problems: ["namespace_not_found", "override_limit_reached", "precondition_failed"],
  examples: [
    {
      summary: "A higher limit for paying customers",
      input: exampleOverrideInput,
      output: { overrideId: exampleOverride.overrideId },
    },
    {
      summary: "Block one customer",
      input: { ...exampleOverrideInput, identifier: "customer_banned", limit: 0 },
      output: { overrideId: "rlor_q8Zt1yXw3vBnMkLj" },
    },
    {
      summary: "A namespace that does not exist",
      input: { ...exampleOverrideInput, namespace: "letters" },
      problem: "namespace_not_found",
    },
  ],
}).handle(async ({ namespace: nameOrId, ...override }, { store, principal, random, now, invalidate, audit, fail }) => {
  const namespace = await store.of(NamespaceWriter).findForUpdate(nameOrId);
  if (!namespace) return fail("namespace_not_found");
  principal.authorize(`ratelimits.${namespace.id}.set_override`);
  const { identifier, limit, duration, mode = null, shadow = null } = override;
  await acceptShadow([override], { store, fail });
  const overrides = store.of(OverrideWriter);
  const former = await overrides.find(namespace.id, identifier);
  if (!former) {
    const { all, multiple } = await overrides.count(namespace.id);
    if (all >= OVERRIDES_MAX) return fail("override_limit_reached", tooMany(OVERRIDES_MAX, "overrides"));
    if (asterisks(identifier) > 1 && multiple >= MULTIPLE_MAX) {
      return fail("override_limit_reached", tooMany(MULTIPLE_MAX, "patterns with more than one asterisk"));
    }
  }
  const overrideId = await overrides.put(namespace.id, { identifier, limit, duration, mode, shadow }, random, now);
  invalidate.namespace(namespace.id);
  const data = { overrideId, namespaceId: namespace.id, identifier };
  audit(
    [overrideId, namespace.id],
    { ...override, ...(former && changedValues({ limit, duration, mode, shadow }, former)) },
    [{ type: "override.set", objectId: overrideId, data }],
  );
  return { overrideId };
});

function tooMany(max: number, what: string): string {
  return `The namespace has the maximum of ${max} ${what}. Delete some of them first.`;
}
