/** Preloaded into an edge: it does not count for how long the node that answers has not read the changes. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/replica/stream.ts", {
  "const age = Math.max(answer.age, sentAt.monotonic - this.#options.clock.monotonic());": "const age = 0;",
});
