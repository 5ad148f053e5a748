import { HOLD_LIMIT_NAMES_MAX, HOLD_LIMITS_MAX } from "../credits/hold.ts";
import type { KeyRecord } from "../directory/records.ts";
import type { SelectedLimits } from "./limits.ts";
import type { VerificationMistake, VerificationRequest } from "./request.ts";

/** The mistake of a call that names a limit which neither the key nor its identity has. */
export function unknownLimit(key: KeyRecord, name: string): VerificationMistake {
  const identity = key.identity
    ? `identity ${key.identity.id} (externalId ${key.identity.externalId})`
    : "it has no identity";
  return {
    kind: "limit_unknown",
    message:
      `The ratelimit '${name}' exists neither on key ${key.keyId} nor on its identity: ${identity}. ` +
      "Create it, or send `limit` and `duration` along with its name.",
  };
}

/** The mistake of a call that would charge budgets of several units; undefined: there is none. */
export function mixedUnits(
  { keyId, budgets }: KeyRecord,
  { credits, principal }: Pick<VerificationRequest, "credits" | "principal">,
): VerificationMistake | undefined {
  if (credits?.cost === 0) return undefined;
  const labelled = budgets.find(({ unit }) => unit !== null);
  const other = budgets.find(({ unit }) => unit !== null && unit !== labelled?.unit);
  if (!labelled || !other) return undefined;
  // Callers without a root key learn nothing of budgets.
  if (principal === null) return { kind: "units_mixed", message: "The credits of this key have different units." };
  return {
    kind: "units_mixed",
    message:
      `The key ${keyId} spends from budgets with different units: ${labelled.budgetId} counts ${labelled.unit}, and ` +
      `${other.budgetId} ${other.unit}. A call has one cost: give the key and its identity budgets of one unit.`,
  };
}

/** The mistake of a call without a hold, of a key whose calls take slots; undefined: there is none. */
export function missingHold(
  { concurrency }: Pick<KeyRecord, "concurrency">,
  { hold }: Pick<VerificationRequest, "hold">,
): VerificationMistake | undefined {
  return concurrency.length > 0 && !hold ? { kind: "hold_required" } : undefined;
}

/** The mistake of a call that would charge more limits than a hold can store; undefined: there is none. */
export function excessiveHold(
  selected: SelectedLimits | undefined,
  { hold }: Pick<VerificationRequest, "hold">,
): VerificationMistake | undefined {
  if (!hold || !selected) return undefined;
  const charged = selected.limits.filter((_, i) => selected.charges[i]?.commit !== false);
  const characters = charged.reduce((sum, { name }) => sum + name.length, 0);
  if (charged.length <= HOLD_LIMITS_MAX && characters <= HOLD_LIMIT_NAMES_MAX) return undefined;
  return {
    kind: "hold_limits_excessive",
    message:
      `This verification would charge ${charged.length} limits with names of ${characters} characters. With \`hold\` it ` +
      `charges at most ${HOLD_LIMITS_MAX} limits, whose names have at most ${HOLD_LIMIT_NAMES_MAX} characters together: ` +
      "name only those in `ratelimits` that it is to charge.",
  };
}
