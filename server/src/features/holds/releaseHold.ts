import { z } from "zod";
import { exampleHold } from "../../platform/vocabulary/examples.ts";
import { metered } from "../services.ts";
import { changeHold, closedOutput } from "./ends.ts";
import { findSubject } from "./find.ts";
import { ClosedOutput, HoldId } from "./record.ts";

export const releaseHold = metered("holds.releaseHold", {
  summary: "Release a hold",
  description:
    "Gives back what was held and charges nothing, for work that was not done. A repetition has the same answer. A hold " +
    "that expired cannot be released: settle it with 0 credits if its expiry charged it.",
  repeatable: true,
  permissions: ["apis.{apiId}.verify_key"],
  input: z.strictObject({ holdId: HoldId }),
  output: ClosedOutput,
  problems: ["hold_not_found", "hold_closed"],
  examples: [
    {
      summary: "Release a hold",
      input: { holdId: exampleHold.holdId },
      output: { holdId: exampleHold.holdId, state: "released", charged: 0, uncovered: 0, budgets: [] },
    },
    {
      summary: "A hold that does not exist",
      input: { holdId: "hold_03yhWPSEYjF9lWCM" },
      problem: "hold_not_found",
    },
  ],
}).handle(async ({ holdId }, services, context) => {
  const hold = await findSubject(holdId, services, context);
  const change = { now: context.clock.now(), principal: context.principal };
  const changed = await changeHold(hold, { kind: "release" }, change, services);
  return JSON.stringify(closedOutput(holdId, changed));
});
