import { type Data, type Input, isProblem, latchkey } from "../../api/client.ts";

/** For a key that limits how many calls run at once: it ends soon, and charges what a verification without it does. */
export const HOLD = { ttl: 1_000, onExpiry: "charge" } as const;

/** Explains a verification, with a hold if the key needs one. */
export async function explain(input: Input<"keys.explainVerification">): Promise<Data<"keys.explainVerification">> {
  try {
    return (await latchkey.keys.explainVerification(input)).data;
  } catch (error) {
    if (!isProblem(error, "user/bad_request/hold_required")) throw error;
    return (await latchkey.keys.explainVerification({ ...input, hold: HOLD })).data;
  }
}
