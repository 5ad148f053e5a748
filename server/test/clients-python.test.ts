/**
 * The published Python client of the reference against the real service: every operation that both have. The client is
 * installed from PyPI into a folder that is kept between runs.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { namesOf } from "../src/platform/rpc/operation.ts";
import { operations } from "../src/service/operations.ts";
import { makeFolder, ROOT_KEY, start } from "./process.ts";
import { findFolder } from "./services/service.ts";

const run = promisify(execFile);
const CLIENT = "unkey.py==3.2.2";
const script = fileURLToPath(new URL("python/flows.py", import.meta.url));
/** Flows that no operation names. */
const others = ["an invalid cursor", "an unknown root key", "asynchronous calls"];

describe("the Python client of the reference", () => {
  let python: string;
  before(async () => {
    python = await clientEnvironment();
  });

  it("passes all of its flows", async (t) => {
    const server = await start({ directory: makeFolder(t) });
    const { stdout } = await run(python, [script, server.address, ROOT_KEY], { timeout: 120_000 });
    const flows = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { flow: string; problem: string | null });
    t.diagnostic(
      `${flows.filter(({ problem }) => problem === null).length} of ${flows.length} flows of ${CLIENT} pass`,
    );
    assert.deepEqual(
      flows.filter(({ problem }) => problem !== null),
      [],
    );
    const ours = new Set(operations.flatMap(namesOf));
    for (const { flow } of flows) assert(ours.has(flow) || others.includes(flow), `${flow} is not an operation.`);
    assert(flows.length >= 44, `${flows.length} flows`);
  });
});

/** The interpreter of a virtual environment with the client, which is created if it is missing. */
async function clientEnvironment(): Promise<string> {
  const folder = join(tmpdir(), `latchkey-test-${CLIENT.replaceAll("=", "-")}`);
  const python = join(folder, "bin/python");
  if (existsSync(python)) return python;
  const programs = findFolder(["python3"], []);
  assert(
    programs,
    "This test needs Python 3.10 or newer: install it (Debian and Ubuntu: `apt-get install python3-venv`).",
  );
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    await run(join(programs, "python3"), ["-m", "venv", unfinished]);
    await run(join(unfinished, "bin/python"), [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--disable-pip-version-check",
      CLIENT,
    ]);
    // Scripts contain the path of the interpreter, and none of them is run.
    if (!existsSync(folder)) renameSync(unfinished, folder);
  } catch (error) {
    throw new Error(`This test needs Python 3.10 or newer with venv, pip and PyPI: ${(error as Error).message}`);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return python;
}
