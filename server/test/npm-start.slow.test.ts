/** `npm start`: npm passes signals on to a shell, which does not pass them on. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually, makeFolder, ROOT_KEY } from "./process.ts";

const repository = fileURLToPath(new URL("../..", import.meta.url));

// npm ignores SIGINT, because Ctrl-C reaches every process of the terminal.
it("npm start ends the service when npm gets SIGTERM", async (t: TestContext) => {
  const directory = makeFolder(t);
  const child = spawn("npm", ["start", "--", "--port", "0"], {
    cwd: repository,
    env: {
      // The Node of this test is new enough, so that the service has no launcher.
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: directory,
      LATCHKEY_DATA_DIR: join(directory, "data"),
      LATCHKEY_DASHBOARD: "off",
      LATCHKEY_ROOT_KEY: ROOT_KEY,
      LATCHKEY_DRAIN: "0",
    },
    stdio: ["ignore", "pipe", "inherit"],
    // A group of its own, which can be ended whatever is left of it.
    detached: true,
  });
  t.after(() => {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch {
      // All of it has ended.
    }
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await eventually("the service", () => output.includes("latchkey is listening"));
  let hasClosed = false;
  // The pipe closes when its last holder, the service, has ended.
  child.stdout.once("close", () => {
    hasClosed = true;
  });
  child.kill("SIGTERM");
  await eventually("the end of the service", () => hasClosed);
  assert.match(output, /"msg":"stopped"/);
});
