/**
 * Cost of a start: `npm run bench:start -- [--rounds 7] [--rest 5] [--postgres postgres://… | --embedded]`.
 *
 * Starts the program on existing data, on one core, from its bundle (`server/bin/latchkey.js`) and from its sources
 * (`server/src/main.ts`) in turn, and verifies a key as soon as the service listens. CPU is that of the whole process
 * until this answer. Memory and threads are those of the process after `--rest` seconds without calls; PSS counts shared
 * memory in parts. PostgreSQL is started for the run; `--embedded` leaves it out. Linux only.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { freshDatabase, startPostgres } from "../server/test/services/postgres.ts";
import { createKeys, JSON_TYPE, post, ROOT_KEY, VERIFY_PATH } from "./lib/keys.ts";
import { canPin, describeMachine, pinned } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { addressLogged, LATCHKEY } from "./lib/server-under-test.ts";
import { spread, writeSpread } from "./lib/statistics.ts";

const programs = {
  bundle: LATCHKEY,
  sources: fileURLToPath(new URL("../server/src/main.ts", import.meta.url)),
};

/** A start and the rest after it: seconds, MiB. */
interface Measured {
  answered: number;
  cpu: number;
  rss: number;
  pss: number;
  threads: number;
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    rest: { type: "string", default: "5" },
    postgres: { type: "string" },
    embedded: { type: "boolean", default: false },
  },
});
const rounds = wholeNumber(values, "rounds", 1, 100);
const rest = wholeNumber(values, "rest", 1, 3_600);
const ticksPerSecond = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

console.log(describeMachine());
console.log(`${rounds} starts of each in turn, ${canPin ? "on core 0" : "not pinned"}, ${rest} s of rest\n`);
const folder = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
const ownPostgres = values.embedded || values.postgres !== undefined ? undefined : await startPostgres();
try {
  await compare("embedded database", { LATCHKEY_DATA_DIR: join(folder, "embedded") });
  if (!values.embedded) {
    process.env.LATCHKEY_TEST_POSTGRES_URL = values.postgres ?? ownPostgres!.url;
    const { url, drop } = await freshDatabase();
    await compare("PostgreSQL", { LATCHKEY_DATA_DIR: join(folder, "postgres"), LATCHKEY_DATABASE_URL: url });
    await drop();
  }
} finally {
  await ownPostgres?.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function compare(title: string, environment: NodeJS.ProcessEnv): Promise<void> {
  const settings = { ...environment, LATCHKEY_ROOT_KEY: ROOT_KEY, LATCHKEY_PORT: "0", LATCHKEY_DRAIN: "0" };
  // Also builds the bundle and fills the caches of the file system.
  const keys = await withService(programs.bundle, settings, (url) => createKeys(url, 1));
  const body = JSON.stringify({ key: keys[0] });
  const measured: Record<string, Measured[]> = { bundle: [], sources: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [name, program] of Object.entries(programs)) {
      measured[name]!.push(
        await withService(program, settings, async (url, { pid }, startedAt) => {
          const answer = JSON.parse(await post(url + VERIFY_PATH, JSON_TYPE, body));
          const answered = (performance.now() - startedAt) / 1_000;
          const cpu = cpuSeconds(pid!);
          if (answer.data.valid !== true) throw new Error(`The key is not valid: ${JSON.stringify(answer)}`);
          await sleep(rest * 1_000);
          return { answered, cpu, ...residence(pid!) };
        }),
      );
    }
  }
  console.log(`${title}:\n`);
  console.log("| | bundle | sources | bundle ÷ sources |\n|---|---|---|---|");
  for (const [measure, name, digits] of [
    ["cpu", "CPU until the first answered call, s", 2],
    ["answered", "time until the first answered call, s", 2],
    ["rss", "memory at rest, RSS in MiB", 0],
    ["pss", "memory at rest, PSS in MiB", 0],
    ["threads", "threads at rest", 0],
  ] as const) {
    const of = (program: string) => spread(measured[program]!.map((one) => one[measure]));
    const ratio = (of("bundle").median / of("sources").median).toFixed(2);
    console.log(
      `| ${name} | ${writeSpread(of("bundle"), digits)} | ${writeSpread(of("sources"), digits)} | ${ratio} |`,
    );
  }
  console.log();
}

/** Starts the service, does the work as soon as it listens, and stops it. */
async function withService<T>(
  program: string,
  settings: NodeJS.ProcessEnv,
  work: (url: string, service: ChildProcess, startedAt: number) => Promise<T>,
): Promise<T> {
  const [command, ...args] = pinned(0, [process.execPath, program, "serve"]);
  const startedAt = performance.now();
  const service = spawn(command!, args, { env: { ...process.env, ...settings }, stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(service, "exit");
  try {
    const address = await addressLogged(service);
    service.stdout!.resume();
    return await work(address, service, startedAt);
  } finally {
    service.kill();
    await exited;
  }
}

function cpuSeconds(pid: number): number {
  // proc(5): the fields after the name in parentheses; utime and stime are the 14th and 15th of all.
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

function residence(pid: number): Pick<Measured, "rss" | "pss" | "threads"> {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const mib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)![1]) / 1_024;
  return { rss: mib("Rss"), pss: mib("Pss"), threads: readdirSync(`/proc/${pid}/task`).length };
}
