/** Preloaded into a node: one of a hundred settlements of a balance is applied twice. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/credits/locked-balance.ts", {
  "this.spent += used;":
    "this.spent += used; if (from === 'held' && Math.random() < 0.01) { this.spent += used; this.remaining -= used; }",
});
