/** Preloaded into a node: one of a hundred spends is subtracted in the answer, and one credit less in the database. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/credits/locked-balance.ts", {
  "this.spent += cost;": "this.spent += cost; if (cost > 0 && Math.random() < 0.01) this.spent -= 1;",
});
