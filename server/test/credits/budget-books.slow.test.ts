/** The books of budgets after more random calls. `SEED=17` repeats a run. */
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";
import { compareBudgets } from "./budget-model.ts";

const STEPS = 5_000;
const seed = Number(process.env.SEED ?? 37);

describeOnStores("the books of budgets after many calls", (server) => {
  it(`add up after each of ${STEPS} random calls, seed ${seed}`, async () => {
    await compareBudgets(server, { steps: STEPS, seed });
  });
});
