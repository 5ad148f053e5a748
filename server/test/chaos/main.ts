/**
 * `npm run chaos -- --minutes 2 --seed 7`: three nodes behind a load balancer, with PostgreSQL and Redis, and three
 * edges, under load and faults that the seed determines. Prints a report. Exits with 1 if its books do not add up, and with 3 if too little was
 * compared to say that they do.
 *
 * `--plant NAME` plants a fault that the books must notice. `npm run chaos:plants` plants each, one after another.
 */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { busyness } from "../busyness.ts";
import { plants } from "./plants.ts";
import { type ChaosReport, describeReport, runChaos, verdictOf } from "./run.ts";

/** How long it may take to find a plant on a quiet machine, from the start of the fleet to the report. */
const FIND_MAX_MS = 120_000;
/** How long faults happen in a run of `--plants`, and until when the load goes on without them, since the start of the fleet. */
const PLANT_MINUTES = 0.5;
const PLANT_LOAD_MS = 80_000;

const USAGE = `npm run chaos -- [--minutes 2] [--seed <number>] [--policy closed|local] [--nodes 3] [--edges 3]
                 [--workers 1] [--plant NAME] [--quiet]

--minutes  how long faults happen, 0.5 to 1440
--seed     the same seed makes the same schedule of faults; default: random
--policy   LATCHKEY_REDIS_POLICY of the nodes; default: closed with plants and for even seeds, local for odd ones
--nodes    2 to 8, behind a load balancer
--edges    0 to 8 \`latchkey edge\` processes: their homes are a node and the load balancer in turn
--workers  LATCHKEY_WORKERS of the nodes, 1 to 64
--plant    plants a fault, which the books must notice:
${Object.entries(plants)
  .map(([name, { what }]) => `             ${name}: ${what}`)
  .join("\n")}
--plants   plants each of them, or that of --plant, one after another, for ${PLANT_MINUTES} minutes, and says which were found
--quiet    prints the report only

Exits with 0 if the books add up (--plants: each plant was found), with 1 if they do not, and with 3 if nothing wrong was
found, but too little was compared.`;

const { values } = parse();
if (values.help) {
  process.stdout.write(`${USAGE}\n`);
  process.exit();
}
const minutes = Number(values.minutes ?? (values.plants ? PLANT_MINUTES : 2));
const seed = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed);
const workers = wholeNumber("workers", 1, 64);
const nodes = wholeNumber("nodes", 2, 8);
const edges = wholeNumber("edges", 0, 8);
// Under local, limits may be exceeded so far that a planted fault of limits can stay unnoticed.
const isPlanted = values.plants || values.plant !== undefined;
const policy = values.policy ?? (isPlanted || seed % 2 === 0 ? "closed" : "local");
if (!(minutes >= 0.5 && minutes <= 1_440)) fail(`--minutes ${values.minutes}: give 0.5 to 1440.`);
if (!Number.isSafeInteger(seed) || seed < 0) fail(`--seed ${values.seed}: give a whole number from 0.`);
if (policy !== "closed" && policy !== "local") fail(`--policy ${policy}: give closed or local.`);
if (values.plant !== undefined && !Object.hasOwn(plants, values.plant)) {
  fail(`--plant ${values.plant}: give one of ${Object.keys(plants).join(", ")}.`);
}

process.exit(values.plants ? await findPlants() : await runOnce());

/** Runs once, prints the report, and returns the exit code. */
async function runOnce(): Promise<number> {
  const report = await run(values.plant);
  const again = [
    `npm run chaos -- --minutes ${minutes} --seed ${seed} --policy ${policy}`,
    ...(nodes === 3 ? [] : [`--nodes ${nodes}`]),
    ...(edges === 3 ? [] : [`--edges ${edges}`]),
    ...(workers === 1 ? [] : [`--workers ${workers}`]),
    ...(values.plant === undefined ? [] : [`--plant ${values.plant}`]),
  ].join(" ");
  process.stdout.write(`${describeReport(report)}\n\nRepeat with: ${again}\n`);
  const verdict = verdictOf(report);
  if (verdict === "wrong") keepLogs(report);
  return { right: 0, wrong: 1, unknown: 3 }[verdict];
}

/** Plants each fault in a run of its own, prints which were found, and returns the exit code. */
async function findPlants(): Promise<number> {
  let isEachFound = true;
  for (const [name, { what, book: wanted }] of Object.entries(plants)) {
    if (values.plant !== undefined && values.plant !== name) continue;
    const startedAt = systemClock.monotonic();
    const report = await run(name);
    const ms = systemClock.monotonic() - startedAt;
    const books = report.books.filter(({ title }) => wanted.test(title));
    const found = books.find(({ wrong }) => wrong > 0);
    const isInTime = ms <= FIND_MAX_MS * busyness();
    isEachFound &&= found !== undefined && isInTime;
    const missed = report.isPlanted ? "NOT FOUND" : "DID NOT HAPPEN, because there were too few calls:";
    const verdict = found === undefined ? missed : isInTime ? "found" : "found too late";
    const compared = books
      .map((book) => `${book.title}: ${book.wrong} wrong of ${book.compared} ${book.unit}`)
      .join("; ");
    process.stdout.write(`${name} (${what}): ${verdict} in ${(ms / 1_000).toFixed(0)} s. ${compared}\n`);
    for (const finding of found?.findings.slice(0, 1) ?? []) process.stdout.write(`    ${finding}\n`);
    if (found === undefined) {
      process.stdout.write(`${describeReport(report)}\n`);
      keepLogs(report);
    }
  }
  return isEachFound ? 0 : 1;
}

function run(plant: string | undefined): Promise<ChaosReport> {
  return runChaos({
    seed,
    policy: policy as "closed" | "local",
    nodes,
    edges,
    workers,
    lengthMs: minutes * 60_000,
    installs: true,
    haste: values.plants ? 2 : 1,
    loadMs: values.plants ? PLANT_LOAD_MS : 0,
    load: 1,
    plant: plant === undefined ? undefined : plants[plant]!,
    freezeMs: minutes >= 1 ? 40_000 : 10_000,
    onProgress: (line) => void (values.quiet || process.stderr.write(`${line}\n`)),
  });
}

function keepLogs({ logs }: ChaosReport): void {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-chaos-logs-"));
  for (const [i, log] of logs.entries()) writeFileSync(join(folder, `${i}.log`), log);
  process.stdout.write(`The logs of the nodes are in ${folder}\n`);
}

function wholeNumber(name: "workers" | "nodes" | "edges", from: number, to: number): number {
  const given = Number(values[name]);
  if (Number.isInteger(given) && given >= from && given <= to) return given;
  return fail(`--${name} ${values[name]}: give a whole number from ${from} to ${to}.`);
}

function parse() {
  try {
    return parseArgs({
      options: {
        minutes: { type: "string" },
        seed: { type: "string" },
        policy: { type: "string" },
        nodes: { type: "string", default: "3" },
        edges: { type: "string", default: "3" },
        workers: { type: "string", default: "1" },
        plant: { type: "string" },
        plants: { type: "boolean", default: false },
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
