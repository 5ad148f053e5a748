/**
 * `npm run chaos -- --minutes 2 --seed 7`: three nodes behind a load balancer, with PostgreSQL and Redis, under load and
 * faults that the seed determines. Prints a report, and exits with 1 if its books do not add up.
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeReport, isBalanced, runChaos } from "./run.ts";

const USAGE = `npm run chaos -- [--minutes 2] [--seed <number>] [--policy closed|local] [--workers 1] [--quiet]

--minutes  how long faults happen, 0.5 to 1440
--seed     the same seed makes the same schedule of faults; default: random
--policy   LATCHKEY_REDIS_POLICY of the nodes; default: closed for even seeds, local for odd ones
--workers  LATCHKEY_WORKERS of the nodes, 1 to 64
--quiet    prints the report only`;

const { values } = parse();
if (values.help) {
  process.stdout.write(`${USAGE}\n`);
  process.exit();
}
const minutes = Number(values.minutes);
const seed = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed);
const workers = Number(values.workers);
const policy = values.policy ?? (seed % 2 === 0 ? "closed" : "local");
if (!(minutes >= 0.5 && minutes <= 1_440)) fail(`--minutes ${values.minutes}: give 0.5 to 1440.`);
if (!Number.isSafeInteger(seed) || seed < 0) fail(`--seed ${values.seed}: give a whole number from 0.`);
if (!(Number.isInteger(workers) && workers >= 1 && workers <= 64)) {
  fail(`--workers ${values.workers}: give a whole number from 1 to 64.`);
}
if (policy !== "closed" && policy !== "local") fail(`--policy ${policy}: give closed or local.`);

const report = await runChaos({
  ...{ seed, policy, workers, lengthMs: minutes * 60_000, haste: 1, installs: true },
  freezeMs: minutes >= 1 ? 40_000 : 10_000,
  onProgress: (line) => void (values.quiet || process.stderr.write(`${line}\n`)),
});
process.stdout.write(
  `${describeReport(report)}\n\nRepeat with: npm run chaos -- --minutes ${minutes} --seed ${seed}${workers === 1 ? "" : ` --workers ${workers}`}\n`,
);
if (!isBalanced(report)) {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-chaos-logs-"));
  for (const [i, log] of report.logs.entries()) writeFileSync(join(folder, `${i}.log`), log);
  process.stdout.write(`The logs of the nodes are in ${folder}\n`);
}
process.exit(isBalanced(report) ? 0 : 1);

function parse() {
  try {
    return parseArgs({
      options: {
        minutes: { type: "string", default: "2" },
        seed: { type: "string" },
        policy: { type: "string" },
        workers: { type: "string", default: "1" },
        quiet: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    return fail((error as Error).message);
  }
}

function fail(reason: string): never {
  process.stderr.write(`${reason}\n\n${USAGE}\n`);
  process.exit(2);
}
