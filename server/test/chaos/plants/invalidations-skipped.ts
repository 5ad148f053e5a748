/** Preloaded into a node: 30 % of all changes, of this node or another, do not invalidate the cached records. */
import { patchModule } from "./patch-module.ts";

patchModule("engine/src/directory/generations.ts", {
  "  bump(tags: readonly string[]): void {":
    "  bump(tags: readonly string[]): void {\n    if (Math.random() < 0.3) return;",
});
