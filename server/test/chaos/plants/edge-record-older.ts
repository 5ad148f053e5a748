/** Preloaded into an edge: a record counts as read when it arrives, so a change that overtook it is forgotten. */
import { patchModule } from "./patch-module.ts";

// Nodes have the same cache, and other changes.
if (process.argv[2] !== "serve") {
  patchModule("engine/src/directory/record-cache.ts", {
    "const generation = generations.newest();\n    const results = await load(names);":
      "const results = await load(names);\n    const generation = generations.newest();",
  });
}
