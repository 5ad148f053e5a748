import { z } from "zod";
import { fullDigest } from "../../../../engine/src/crypto/digest.ts";
import { exampleHold } from "../../platform/vocabulary/examples.ts";
import { Tags } from "../../platform/vocabulary/schema.ts";
import { metered } from "../services.ts";
import { changeHold, closedOutput } from "./ends.ts";
import { findSubject } from "./find.ts";
import { findUnchargedLimit, SettledLimits } from "./limits.ts";
import { ClosedOutput, HoldId, SettledCredits } from "./record.ts";

export const settleHold = metered("holds.settleHold", {
  summary: "Settle a hold",
  description:
    "Charges what the work did cost, and gives back the rest of what was held. If it did cost more, every balance is " +
    "charged as far as it has credits; `uncovered` says what was lacking. A repetition with the same amounts has the same " +
    "answer and charges nothing. An expired hold can be settled for as long as it is stored: what its expiry charged is " +
    "given back first. `ratelimits` corrects limits that the verification charged; the others stay charged.",
  repeatable: true,
  permissions: ["apis.{apiId}.verify_key"],
  input: z.strictObject({
    holdId: HoldId,
    credits: SettledCredits,
    ratelimits: SettledLimits.optional().describe(
      "What the work did cost of limits that the verification charged, by name. Less is given back in the window of the " +
        "charge. What is more is charged now, also beyond the limit. A limit that is counted elsewhere by now, as after an " +
        "outage of Redis, stays as it is.",
    ),
    tags: Tags.optional().describe("Tags of these credits in the analytics."),
  }),
  output: ClosedOutput,
  problems: ["hold_not_found", "hold_closed", "precondition_failed"],
  examples: [
    {
      summary: "Less than was held",
      input: { holdId: exampleHold.holdId, credits: 873, tags: ["model=large"] },
      output: { holdId: exampleHold.holdId, state: "settled", charged: 873, uncovered: 0, budgets: [] },
    },
    {
      summary: "A limit that the verification did not charge",
      input: { holdId: exampleHold.holdId, credits: 873, ratelimits: [{ name: "seconds", cost: 9 }] },
      problem: "precondition_failed",
      detail: unchargedDetail("seconds"),
    },
    {
      summary: "A hold that does not exist",
      input: { holdId: "hold_03yhWPSEYjF9lWCM", credits: 873 },
      problem: "hold_not_found",
    },
  ],
}).handle(async ({ holdId, credits, ratelimits = [], tags }, services, context) => {
  const found = findSubject(holdId, services, context);
  const hold = found instanceof Promise ? await found : found;
  const uncharged = findUnchargedLimit(hold.limits, ratelimits);
  if (uncharged !== undefined) context.fail("precondition_failed", unchargedDetail(uncharged));
  const sorted = ratelimits.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const settlement = fullDigest(JSON.stringify({ credits, ratelimits: sorted }));
  const action = { kind: "settle" as const, amount: credits, settlement };
  const { clock, principal } = context;
  const changed = await changeHold(hold, action, { now: clock.now(), principal, tags, ratelimits }, services);
  return JSON.stringify(closedOutput(holdId, changed));
});

function unchargedDetail(name: string): string {
  return `The verification has charged no limit '${name}'. Name it in 'ratelimits' of the verification too.`;
}
