/** Preloaded into a node: of each lease that it grants, it subtracts 1 from the limit. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/limits/leases.ts", {
  "const charge: Charge = { ...limit, cost: amount };": "const charge: Charge = { ...limit, cost: 1 };",
});
