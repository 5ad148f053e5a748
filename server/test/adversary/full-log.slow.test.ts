/** A log on a full disk: every write fails. A log that nobody reads: no write ends. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { eventually, makeFolder, Program, programFile, ROOT_KEY } from "../process.ts";
import { freePort } from "../services/free-port.ts";

const outputs = {
  "is on a full disk": 'exec "$@" > /dev/full 2>&1',
  "is not read": 'exec "$@" > "$PIPE"',
};

for (const [what, command] of Object.entries(outputs)) {
  it(`the service answers and stops although its log ${what}`, (t) => answersAndStops(t, command));
}

async function answersAndStops(t: TestContext, command: string): Promise<void> {
  if (!existsSync("/dev/full")) return t.skip("needs /dev/full");
  const directory = makeFolder(t);
  const pipe = join(directory, "log");
  execFileSync("mkfifo", [pipe]);
  // A reader that never reads.
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  t.after(() => closeSync(reader));
  const port = await freePort();
  const program = new Program([programFile(), "serve"], {
    directory,
    environment: { PIPE: pipe },
    settings: { PORT: String(port), ROOT_KEY, DRAIN: "0", DASHBOARD: "off", LOG_LEVEL: "debug" },
    under: ["sh", "-c", command, "sh"],
  });
  t.after(() => program.kill("SIGKILL"));
  const call = (body: object) =>
    fetch(`http://127.0.0.1:${port}/v2/keys.verifyKey`, {
      method: "POST",
      headers: { authorization: `Bearer ${ROOT_KEY}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  await eventually("the service", async () => {
    if (program.hasEnded) throw new Error(program.output);
    return await call({ key: "unknown" }).then(
      ({ status }) => status === 200,
      () => false,
    );
  });
  // 8 MB of lines, eight times what waits.
  for (let i = 0; i < 40_000; i += 100) {
    const answers = await Promise.all(Array.from({ length: 100 }, () => call({ key: "unknown" })));
    for (const { status, body } of answers) {
      assert.equal(status, 200);
      await body?.cancel();
    }
  }
  assert.deepEqual(await program.kill("SIGTERM"), { code: 0, signal: null });
}
