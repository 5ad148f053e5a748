import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";

const { stopWithNpm } = await import(new URL("../bin/runtime.js", import.meta.url).href);

/** The signals that a process of this script of npm sends to itself when its parent has changed. */
function signalsOf(t: TestContext, variables: Record<string, string>): unknown[] {
  const { env, ppid } = process;
  const names = ["npm_lifecycle_event", "npm_lifecycle_script"];
  const before = names.map((name) => [name, env[name]] as const);
  const kill = t.mock.method(process, "kill", () => true);
  t.mock.timers.enable({ apis: ["setInterval"] });
  try {
    for (const name of names) delete env[name];
    Object.assign(env, variables);
    stopWithNpm();
    Object.defineProperty(process, "ppid", { value: ppid + 1, configurable: true, writable: true });
    t.mock.timers.tick(10_000);
    return kill.mock.calls.map(({ arguments: [, signal] }) => signal);
  } finally {
    Object.defineProperty(process, "ppid", { value: ppid, configurable: true, writable: true });
    for (const [name, value] of before) {
      if (value === undefined) delete env[name];
      else env[name] = value;
    }
    t.mock.timers.reset();
    kill.mock.restore();
  }
}

it("a service ends with the script of npm that waits for it, and not with one that started it in the background", (t) => {
  const start = { npm_lifecycle_event: "start" };
  assert.deepEqual(signalsOf(t, {}), []);
  assert.deepEqual(signalsOf(t, start), ["SIGTERM"]);
  for (const script of ["latchkey serve", "npm run build && latchkey serve"]) {
    assert.deepEqual(signalsOf(t, { ...start, npm_lifecycle_script: script }), ["SIGTERM"], script);
  }
  for (const script of ["latchkey serve & vite", "latchkey serve >log 2>&1 &", "a&&b &"]) {
    assert.deepEqual(signalsOf(t, { ...start, npm_lifecycle_script: script }), [], script);
  }
  assert.deepEqual(signalsOf(t, { npm_lifecycle_event: "" }), []);
});
