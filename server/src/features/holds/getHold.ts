import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { exampleHold } from "../../platform/vocabulary/examples.ts";
import { findHold } from "./find.ts";
import { HoldId, HoldOutput, toHoldOutput } from "./record.ts";

export const getHold = query("holds.getHold", {
  summary: "Get a hold",
  description:
    "A hold with its state. Settled and released holds stay for an hour after their expiry, expired ones for a day.",
  permissions: ["apis.{apiId}.read_key"],
  input: z.strictObject({ holdId: HoldId }),
  output: HoldOutput,
  problems: ["hold_not_found"],
  examples: [
    { summary: "By id", input: { holdId: exampleHold.holdId }, output: exampleHold },
    {
      summary: "A hold that does not exist",
      input: { holdId: "hold_03yhWPSEYjF9lWCM" },
      problem: "hold_not_found",
    },
  ],
}).handle(async ({ holdId }, context) => toHoldOutput(await findHold(holdId, context)));
