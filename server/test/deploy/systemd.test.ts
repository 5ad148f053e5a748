/** The unit of systemd. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { configSettings } from "../../src/platform/config/config.ts";
import { makeFolder, needProgram, start } from "../process.ts";
import { needTool, repository, runTool, tools } from "./tools.ts";

const unit = readFileSync(join(repository, "deploy/systemd/latchkey.service"), "utf8");
/** From 0 (everything is forbidden) to 10; systemd calls up to 2 "OK". */
const EXPOSURE_MAX = 1.5;

describe("latchkey.service", () => {
  it("is accepted by systemd without a warning", async (t) => {
    const verified = await verify(t, unit);
    if (verified) assert.deepEqual(verified, { code: 0, output: "" });
  });

  it("is not accepted with an unknown setting", async (t) => {
    const verified = await verify(t, unit.replace("PrivateTmp=", "PrivateTemporary="));
    if (verified) assert.match(verified.output, /Unknown key/);
  });

  it("is confined", async (t) => {
    const analyze = needTool(t, tools.systemdAnalyze);
    if (!analyze) return;
    const file = join(makeFolder(t), "latchkey.service");
    writeFileSync(file, unit);
    const { output } = await runTool(analyze, ["security", "--offline=true", "--no-pager", file]);
    const [, exposure] = /Overall exposure level for latchkey\.service: ([\d.]+)/.exec(output) ?? [];
    assert(Number(exposure) <= EXPOSURE_MAX, output);
  });

  it("allows the system calls that the service needs", async (t) => {
    const analyze = needTool(t, tools.systemdAnalyze);
    if (!analyze) return;
    const allowed = allowedCalls((await runTool(analyze, ["syscall-filter", "--no-pager"])).output);
    const directory = makeFolder(t);
    const rejected = join(directory, "rejected");
    // "?": names that strace does not know. Calls that the filter forbids fail as they would under systemd.
    const others = `!${allowed.map((name) => `?${name}`).join(",")}`;
    const strace = [await needProgram("strace"), "-D", "-f", "-qq", "--seccomp-bpf", "-o", rejected];
    const server = await start({
      directory,
      under: [...strace, "-e", `trace=${others}`, "-e", `inject=${others}:error=EPERM`],
    });
    const { apiId } = await server.ok("apis.createApi", { name: "confined" });
    const { key } = await server.ok("keys.createKey", { apiId, credits: { remaining: 2 } });
    assert.equal((await server.ok("keys.verifyKey", { key })).code, "VALID");
    assert.deepEqual(await server.kill("SIGTERM"), { code: 0, signal: null });
    const names = new Set(readFileSync(rejected, "utf8").match(/(?<=^\d+ +)\w+(?=\()/gm));
    // SQLite gives its files the owner of the database, and calls this as root only.
    names.delete("fchown");
    assert.deepEqual([...names], []);
  });

  it("leaves a stop the time that it needs, and connections the files that they need", () => {
    const value = (name: string) => Number.parseInt(new RegExp(`^${name}=(.*)$`, "m").exec(unit)![1]!, 10);
    // The default of LATCHKEY_DRAIN, and what a stop takes at most after it.
    assert(value("TimeoutStopSec") > 5 + 10);
    assert(value("LimitNOFILE") > configSettings.connectionsMax.read(new Map()));
  });
});

/** The names of the system calls that the unit allows, from the sets that `systemd-analyze syscall-filter` prints. */
function allowedCalls(printed: string): string[] {
  const sets = new Map<string, string[]>();
  let members: string[] = [];
  for (const line of printed.split("\n")) {
    const [, indent, name] = /^( *)([@\w-]+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    if (indent !== "") {
      members.push(name);
      continue;
    }
    members = [];
    sets.set(name, members);
  }
  const expand = (name: string): string[] => (name.startsWith("@") ? sets.get(name)!.flatMap(expand) : [name]);
  const allowed = new Set(expand("@default"));
  for (const [, inverted, names] of unit.matchAll(/^SystemCallFilter=(~?)(.*)$/gm)) {
    for (const name of names!.split(" ").flatMap(expand)) inverted ? allowed.delete(name) : allowed.add(name);
  }
  return [...allowed];
}

/** What `systemd-analyze verify` says of a unit, in a root folder with the units of this machine. */
async function verify(t: TestContext, text: string) {
  const analyze = needTool(t, tools.systemdAnalyze);
  if (!analyze) return undefined;
  const root = makeFolder(t);
  cpSync("/lib/systemd/system", join(root, "lib/systemd/system"), { recursive: true, verbatimSymlinks: true });
  const [, program] = /^ExecStart=(\S+)/m.exec(text)!;
  for (const [path, content, mode] of [
    [program!, "#!/bin/sh\n", 0o755],
    ["etc/systemd/system/latchkey.service", text, 0o644],
  ] as const) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content, { mode });
  }
  return runTool(analyze, ["verify", "--man=no", `--root=${root}`, "latchkey.service"]);
}
