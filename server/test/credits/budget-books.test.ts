/** The books of budgets after random calls on both databases. `SEED=17` repeats a run; `npm run accuracy` makes more calls. */
import { it } from "node:test";
import { describeOnStores } from "../harness.ts";
import { compareBudgets } from "./budget-model.ts";

const STEPS = 1_000;
const seed = Number(process.env.SEED ?? 36);

describeOnStores("the books of budgets", (server) => {
  it(`add up after each of ${STEPS} random calls, seed ${seed} (rule 89)`, async () => {
    await compareBudgets(server, { steps: STEPS, seed });
  });
});
