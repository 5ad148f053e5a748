#!/usr/bin/env node
// The command `latchkey`. A Node that is too old hands over to one that is not, and this file runs again there.
import module from "node:module";
import { fileURLToPath } from "node:url";
import { isNewEnough, runNode, stopWithLauncher } from "./runtime.js";

if (isNewEnough()) {
  stopWithLauncher();
  // Beside the dependencies and not in the shared temporary folder, where another user could leave code for us to run.
  const cache = new URL("../../node_modules/.cache/latchkey", import.meta.url);
  module.enableCompileCache(process.env.NODE_COMPILE_CACHE ?? fileURLToPath(cache));
  await import("../src/main.ts");
  // A service may run for months and end by a signal, so what was compiled is kept as soon as it is known.
  module.flushCompileCache();
} else {
  runNode([fileURLToPath(import.meta.url), ...process.argv.slice(2)], { tied: true });
}
