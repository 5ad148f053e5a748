/** Held credits after more random calls. `SEED=17` repeats a run; `npm run accuracy -- --only holds` makes still more. */
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";
import { compareHolds } from "./hold-model.ts";

const STEPS = 5_000;
const seed = Number(process.env.SEED ?? 34);

describeOnStores("credits held in the ledger during many calls", (server) => {
  it(`add up after each of ${STEPS} random steps, seed ${seed}`, async () => {
    await compareHolds(server, { steps: STEPS, seed });
  });
});
