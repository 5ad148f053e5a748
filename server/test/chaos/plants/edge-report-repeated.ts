/** Preloaded into an edge: one of twenty reports is sent again, with another number. */
import { patchModule } from "./patch-module.ts";

patchModule("server/src/edge/counts.ts", {
  "await this.send(report);":
    "await this.send(report); if (Math.random() < 0.05) await this.send({ ...report, sequence: report.sequence + 32 });",
});
