#!/usr/bin/env node
// The command `latchkey`. If this Node is too old, it starts a newer one, which runs this file again.
import module from "node:module";
import { fileURLToPath } from "node:url";
import { isNewEnough, runNode, stopWithLauncher } from "./runtime.js";

if (isNewEnough()) {
  stopWithLauncher();
  // Not in the shared temporary folder, where another user could put code that we would run.
  const cache = new URL("../../node_modules/.cache/latchkey", import.meta.url);
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE ?? fileURLToPath(cache));
  await import("../src/main.ts");
  // Written now: a service can run for months and end by a signal, without a normal exit.
  module.flushCompileCache();
} else {
  runNode([fileURLToPath(import.meta.url), ...process.argv.slice(2)], { tied: true });
}
