import { z } from "zod";
import { exampleHold } from "../../platform/vocabulary/examples.ts";
import { metered } from "../services.ts";
import { changeHold } from "./ends.ts";
import { findSubject } from "./find.ts";
import { HoldId, Ttl, VerifiedHold } from "./record.ts";

export const extendHold = metered("holds.extendHold", {
  summary: "Extend a hold",
  description:
    "Lets an open hold expire later, for work that lasts longer than expected. It never expires earlier by that, and at " +
    "the latest 24 hours after it was made.",
  repeatable: true,
  permissions: ["apis.{apiId}.verify_key"],
  input: z.strictObject({
    holdId: HoldId,
    ttl: Ttl.describe("Milliseconds from now until the hold expires."),
  }),
  output: VerifiedHold,
  problems: ["hold_not_found", "hold_closed"],
  examples: [
    {
      summary: "Two more minutes",
      input: { holdId: exampleHold.holdId, ttl: 120_000 },
      output: { holdId: exampleHold.holdId, expiresAt: exampleHold.expiresAt },
    },
    {
      summary: "A hold that does not exist",
      input: { holdId: "hold_03yhWPSEYjF9lWCM", ttl: 120_000 },
      problem: "hold_not_found",
    },
  ],
}).handle(async ({ holdId, ttl }, services, context) => {
  const hold = await findSubject(holdId, services, context);
  const change = { now: context.clock.now(), principal: context.principal };
  const { expiresAt } = await changeHold(hold, { kind: "extend", ttl }, change, services);
  return JSON.stringify({ holdId, expiresAt });
});
