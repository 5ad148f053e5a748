/** Preloaded into an edge: one of twenty reports is sent again, with another number. */
import { patchModule } from "./patch-module.ts";

patchModule("server/src/edge/counts.ts", {
  "await home.report({ recorder, sequence: number, verifications: part, uses: [] });":
    "for (const more of Math.random() < 0.05 ? [0, 32] : [0]) await home.report({ recorder, sequence: number + more, verifications: part, uses: [] });",
});
