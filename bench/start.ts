/**
 * Cost of a start: `npm run bench:start -- [--rounds 7] [--rest 5] [--postgres postgres://… | --embedded]`.
 *
 * Starts the program on existing data, on one core, from its bundle (`server/bin/latchkey.js`) and from its sources
 * (`server/src/main.ts`) in turn, and verifies a key as soon as the service listens. CPU is that of the whole process
 * until this answer. Memory and threads are those of the process after `--rest` seconds without calls; PSS counts shared
 * memory in parts. PostgreSQL is started for the run; `--embedded` leaves it out. Linux only.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { freshDatabase, startPostgres } from "../server/test/services/postgres.ts";
import { createKeys, ROOT_KEY } from "./lib/keys.ts";
import { canPin, describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";
import { LATCHKEY } from "./lib/server-under-test.ts";
import { type MeasuredStart, measureStart, withService } from "./lib/start.ts";
import { spread, writeSpread } from "./lib/statistics.ts";

const programs = {
  bundle: LATCHKEY,
  sources: fileURLToPath(new URL("../server/src/main.ts", import.meta.url)),
};

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
  const measured: Record<string, MeasuredStart[]> = { bundle: [], sources: [] };
  for (let round = 0; round < rounds; round++) {
    for (const [name, program] of Object.entries(programs)) {
      measured[name]!.push(await measureStart(program, settings, keys[0]!, rest));
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
