/** Preloaded into an edge: one of twenty reports is sent again, with another number. */
import { patchModule } from "./patch-module.ts";

patchModule("server/src/edge/counts.ts", {
  "const loss = await deliver(this.#home, report);":
    "const loss = await deliver(this.#home, report); if (Math.random() < 0.05) await deliver(this.#home, { ...report, sequence: report.sequence + 32 });",
});
