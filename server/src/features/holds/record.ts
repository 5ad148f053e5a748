import { z } from "zod";
import { HOLD_AGE_MAX, holdStates, onExpiries } from "../../../../engine/src/credits/hold.ts";
import type { HoldRow } from "../../platform/store/schema.ts";
import { ConcurrencyOutput, CREDITS_MAX, duration, integer, text } from "../../platform/vocabulary/schema.ts";
import { heldBalanceIds } from "../credits/statements/balances.ts";

const TTL_MIN = 1_000;

export const HoldId = text(3, 255, {
  regex: /^[a-zA-Z0-9_]+$/,
  says: "may hold letters, digits and underscores",
}).describe("Identifier of a hold, as verifyKey gave it.");

export const Ttl = duration(TTL_MIN, HOLD_AGE_MAX);

const OnExpiry = z
  .enum(onExpiries)
  .describe(
    "What happens to the credits if nobody settles or releases the hold in time. `release`: they are given back. " +
      "`charge`: they are spent.",
  );

/** `hold` of a verification. */
export const HoldInput = z.strictObject({
  ttl: Ttl.describe("Milliseconds until the hold expires."),
  onExpiry: OnExpiry.default("release"),
});

/** `hold` in the answer to a verification. */
export const VerifiedHold = z.strictObject({
  holdId: z.string(),
  expiresAt: z.int().describe("Unix time in milliseconds."),
});

/** A limit of concurrency in the answer to a verification. */
export const ConcurrencyState = ConcurrencyOutput.extend({
  from: z.enum(["key", "identity"]).describe("Where the limit comes from. All keys of an identity share its slots."),
  inUse: z.int().describe("How many holds are open, with that of this call."),
  exceeded: z.boolean().describe("Whether it denies the call."),
  retryAfter: z
    .int()
    .optional()
    .describe("If it is exceeded: milliseconds until the first of these holds expires, or less. Any can end earlier."),
});

export const SettledCredits = integer(0, CREDITS_MAX).describe("What the work did cost. It can be more than was held.");

export const HoldStateField = z
  .enum(holdStates)
  .describe("`open` becomes one of the others. Of these, only `expired` becomes `settled`: by a late settlement.");

const Lacks = z
  .array(z.strictObject({ budgetId: z.string(), uncovered: z.int() }))
  .describe("The budgets that did not cover all of it, and what each did not cover.");

/** What becomes of a hold. */
export const ClosedOutput = z.strictObject({
  holdId: z.string(),
  state: HoldStateField,
  charged: z
    .int()
    .describe("The credits that were charged: what every balance covered. 0 for a key without credits and budgets."),
  uncovered: z
    .int()
    .describe("What the work did cost besides: the most that a balance did not cover. 0 if nothing was lacking."),
  budgets: Lacks,
});

export type Closed = z.output<typeof ClosedOutput>;

export const HoldOutput = z
  .strictObject({
    holdId: z.string(),
    keyId: z.string(),
    apiId: z.string(),
    state: HoldStateField,
    credits: z.int().describe("The credits that it takes from each balance until it ends."),
    onExpiry: OnExpiry,
    createdAt: z.int().describe("Unix time in milliseconds."),
    expiresAt: z.int().describe("When it expires, or would have expired."),
    closedAt: z.int().optional().describe("When it was settled or released, or its expiry was noticed."),
    charged: z.int().optional().describe("The credits that its end charged. Absent while it is open."),
    uncovered: z.int().optional().describe("What its settlement asked for besides. Absent while it is open."),
  })
  .meta({ id: "Hold", description: "Credits that a call holds until its cost is known." });

/** Columns of a hold that the API returns. The others can be large. */
export const shownColumns = [
  "id",
  "key_id",
  "api_id",
  "state",
  "cost",
  "on_expiry",
  "created_at",
  "expires_at",
  "closed_at",
  "charged",
  "uncovered",
] as const;

/** Columns that say whose a hold is. */
export const ownerColumns = ["workspace_id", "subject", "balances"] as const;

export type ShownHold = Pick<HoldRow, (typeof shownColumns)[number]>;
export type ListedHold = ShownHold & Pick<HoldRow, (typeof ownerColumns)[number]>;

/** A hold as the API returns it. */
export function toHoldOutput(hold: ShownHold): z.input<typeof HoldOutput> {
  const { charged, uncovered, closed_at: closedAt } = hold;
  return {
    holdId: hold.id,
    keyId: hold.key_id,
    apiId: hold.api_id,
    state: hold.state,
    credits: hold.cost,
    onExpiry: hold.on_expiry,
    createdAt: hold.created_at,
    expiresAt: hold.expires_at,
    ...(closedAt !== null && { closedAt }),
    ...(charged !== null && { charged }),
    ...(uncovered !== null && { uncovered }),
  };
}

/** Whose verification made a hold, and what it takes its credits from. */
export interface HoldOwner {
  readonly workspaceId: string;
  readonly keyId: string;
  readonly apiId: string;
  readonly identityId: string | null;
  /** Their ids. Of a stored hold they only become fewer. */
  readonly balances: readonly string[];
}

type OwnedHold = Pick<HoldRow, "workspace_id" | "key_id" | "api_id" | "subject" | "balances">;

export function ownerOfHold(hold: OwnedHold): HoldOwner {
  const identityId = identityOfSubject(hold.subject);
  const { workspace_id: workspaceId, key_id: keyId, api_id: apiId } = hold;
  return { workspaceId, keyId, apiId, identityId, balances: heldBalanceIds(hold.balances) };
}

/** What is needed to change a hold and to record its end. No change of a hold alters it, except its balances. */
export interface HoldSubject extends HoldOwner {
  readonly holdId: string;
  /** JSON of the receipt of its limits. */
  readonly limits: string | null;
}

export const subjectColumns = ["id", "workspace_id", "key_id", "api_id", "subject", "balances", "limits"] as const;

/** The columns that have it. */
export type SubjectRow = Pick<HoldRow, (typeof subjectColumns)[number]>;

export function subjectOfHold(hold: SubjectRow): HoldSubject {
  return { ...ownerOfHold(hold), holdId: hold.id, limits: hold.limits };
}

/** What a hold stores for the record of its end. */
export interface RecordedSubject {
  readonly identityId: string;
}

/** The identity in what a hold stores for the record of its end. */
export function identityOfSubject(subject: string | null): string | null {
  return subject === null ? null : (JSON.parse(subject) as RecordedSubject).identityId;
}

/** Why holds cannot be made. */
export const OLDER_PROGRAMS =
  "Another node runs an earlier release, which knows no holds, or is starting. Upgrade every node, then send the request again.";
