import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { startThread } from "./reused.ts";

/** Runs `source` in a thread that serves a database, and resolves with the thread and the error when it has stopped. */
async function run(source: string): Promise<string> {
  const handle = startThread({
    file: "is not opened",
    mode: "read",
    durability: "normal",
    priority: "normal",
    syncs: new SharedArrayBuffer(8),
    procedures: {
      module: `data:text/javascript,import { parentPort, threadId } from "node:worker_threads";
        export default () => { ${source}; throw new Error(threadId); };`,
      options: {},
    },
  });
  let error = "";
  handle.on("error", (reason: Error) => {
    error = reason.message;
  });
  await new Promise((resolve) => handle.once("exit", resolve));
  return error;
}

it("a thread that serves many databases keeps no listener of them", async (t) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const first = await run("");
  // One more than listeners without a warning.
  for (let i = 0; i < EventEmitter.defaultMaxListeners; i++) assert.equal(await run(""), first);
  await setImmediate();
  assert.deepEqual(warnings, []);
});

it("a thread serves one database after another, but none after its end", async () => {
  const first = await run("");
  assert.match(first, /^\d+$/);
  assert.equal(await run(""), first);
  assert.equal(await run("process.exit(1)"), "");
  const second = await run("");
  assert(Number(second) > Number(first), second);
  // Ends when it serves nothing.
  assert.equal(await run("setImmediate(() => process.exit(1))"), second);
  for (let i = 0; i < 3; i++) assert.match(await run(""), /^\d+$/);
});
