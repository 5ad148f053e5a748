/** Preloaded into an edge: it does not know that a key can have a balance, and judges it without. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/replica/source.ts", {
  'needs.has("balance") || needs.has("budgets") ||': 'needs.has("budgets") ||',
});
