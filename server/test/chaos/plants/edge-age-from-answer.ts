/** Preloaded into an edge: it counts the age of its records from the arrival of an answer, and not from when it asked. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/replica/stream.ts", {
  "this.#readAt = { monotonic: sentAt.monotonic - age, wall: instantAt(sentAt.wall - age) };":
    "const since = Math.max(0, answer.age); this.#readAt = { monotonic: this.#options.clock.monotonic() - since, wall: instantAt(this.#options.clock.now() - since) };",
});
