import { setTimeout } from "node:timers/promises";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { busyness } from "../busyness.ts";
import { eventually } from "../process.ts";
import { type AuditedChange, balance, type DatabaseState, type Promises, type Timelines } from "./books.ts";
import { Callers } from "./callers.ts";
import type { Book } from "./count.ts";
import { type PlannedFault, planFaults, runFaults } from "./faults.ts";
import { Fleet, type FleetProgram } from "./fleet.ts";
import { Journal } from "./journal.ts";
import type { Plant } from "./plants.ts";
import { Timeline } from "./timeline.ts";

export interface ChaosOptions {
  seed: number;
  /** How long faults happen, in ms. */
  lengthMs: number;
  /** Until when the load goes on after them, in ms since the start of the fleet. */
  loadMs: number;
  policy: "closed" | "local";
  nodes: number;
  edges: number;
  /** `LATCHKEY_WORKERS` of the nodes. */
  workers: number;
  /** How long a frozen node stays frozen, in ms. */
  freezeMs: number;
  /** Divides how long other faults last. */
  haste: number;
  /** Whether missing Debian packages that only some faults need are installed. */
  installs: boolean;
  /** The number of clients, as a factor. */
  load: number;
  /** A fault that is planted into the nodes or their database, to see whether the books notice it. */
  plant?: Plant | undefined;
  onProgress(line: string): void;
}

/** The result of a run. */
export interface ChaosReport {
  options: ChaosOptions;
  /** How often each fault ran. */
  faults: Map<string, number>;
  /** Faults that this machine does not allow. */
  missing: string[];
  statuses: Map<string, number>;
  lengthMs: number;
  worstLagMs: number;
  books: Book[];
  /** False if a planted fault did not happen, because there were too few calls. */
  isPlanted: boolean;
  /** The output of each process of a node. */
  logs: string[];
}

/** A load balancer needs two checks of 200 ms, a node about a second to start. */
const SETTLE_MS = 30_000;
/** How long the last holds may need to expire after their time, when all nodes are well. */
const EXPIRIES_MS = 10_000;
/** How long the last counts of edges may take to arrive. */
const COUNTS_MS = 10_000;

/** Runs a fleet under load and faults, and compares its answers with its database. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, lengthMs, loadMs, policy, nodes, edges, workers } = options;
  const { freezeMs, haste, installs, load, plant, onProgress } = options;
  const promised = { policy, nodes, edges, staleMaxMs: Math.max(2_000, Math.round(8_000 / haste)) };
  const databaseMebibytes = 96 + Math.ceil(lengthMs / 60_000) * 40;
  const openedAt = systemClock.monotonic();
  const fleet = await Fleet.open({ ...promised, workers, databaseMebibytes, installs, plant });
  try {
    const timelines = { nodes: new Timeline(nodes), edges: new Timeline(edges) };
    const journal = new Journal();
    const bound = promised.staleMaxMs;
    const callers = new Callers({
      fleet,
      journal,
      seed,
      load,
      limitFactor: policy === "local" ? nodes : 1,
      probesMs: [0, 1_300, 2_500, bound + 1_500, bound + 8_000 / haste],
      edgeProbesMs: [500, 1_001, 1_200, 1_500, 4_000],
    });
    await callers.prepare();
    await healthy(fleet);
    const measuring = measure(fleet, timelines);
    const problems = new Counts();
    const watching = watch(fleet, problems);
    callers.start();
    const startedAt = systemClock.monotonic();
    const plan = planFaults(seededRandom(seed), { lengthMs, freezeMs, nodes, edges, haste }, fleet);
    const ran: PlannedFault[] = [];
    const random = seededRandom(seed + 1);
    const onFault = (fault: PlannedFault) => {
      ran.push(fault);
      const at = ((systemClock.monotonic() - startedAt) / 1_000).toFixed(1);
      const { name, node, edge, ms } = fault;
      const hit = node !== undefined ? `, node ${node}` : edge !== undefined ? `, edge ${edge}` : "";
      onProgress(`${at} s: ${name}${hit}, ${ms} ms`);
    };
    problems.add(await runFaults(fleet, plan, timelines, { freezeMs, random, onFault }));
    onProgress("all faults are repaired; calls without an outcome are repeated");
    await healthy(fleet).catch((error: Error) => problems.add([error.message]));
    await setTimeout(Math.max(0, openedAt + loadMs - systemClock.monotonic()));
    const promises: Promises = { ...promised, endedAt: systemClock.monotonic() };
    await callers.stop(SETTLE_MS);
    const ranMs = systemClock.monotonic() - startedAt;
    await callers.followUntil(await lastChange(fleet), SETTLE_MS);
    callers.close();
    await verifyAll(fleet, journal);
    await waitForCounts(fleet, journal);
    const expiredBy = await waitForExpiries(fleet);
    watching.stop();
    await measuring.stop();
    // Edges deliver their last counts.
    for (const [what, programs] of [["edge", fleet.edges] as const, ["node", fleet.nodes] as const]) {
      for (const { server, index } of programs) {
        const ended = await server?.kill("SIGTERM");
        if (ended && ended.code !== 0) problems.add([`${what} ${index} ended with ${ended.code} after SIGTERM`]);
      }
    }
    const isPlanted = plant?.happened === undefined || (await fleet.query(plant.happened)).length > 0;
    const books = balance(journal, await readDatabase(fleet, expiredBy), timelines, promises);
    return {
      options,
      faults: tally(ran.map(({ name }) => name)),
      missing: fleet.missing,
      statuses: journal.statuses,
      lengthMs: ranMs,
      worstLagMs: timelines.nodes.worstLagMs,
      isPlanted,
      books: [...books, problems.book(ran.length)],
      logs: fleet.logs,
    };
  } finally {
    await fleet.close();
  }
}

/** What went wrong with nodes and edges: they did not start, did not recover, or ended by themselves. */
class Counts {
  readonly #problems: string[] = [];

  add(problems: readonly string[]): void {
    this.#problems.push(...problems);
  }

  book(faults: number): Book {
    const { length } = this.#problems;
    return {
      title: "nodes and edges that ended, did not start or did not recover",
      compared: faults,
      unit: "faults",
      floor: 1,
      calls: 0,
      wrong: length,
      findings: this.#problems.slice(0, 8),
    };
  }
}

/** Resolves when every node and edge says that it is well, and the load balancer reaches one. The books judge how long it took. */
async function healthy({ nodes, edges, balancerPort }: Fleet): Promise<void> {
  for (const port of [...nodes.map((node) => node.port), balancerPort, ...edges.map((edge) => edge.port)]) {
    let last = "no answer";
    const isWell = async () => {
      const answer = await askReadiness(port).catch((error: Error) => ({ isWell: false, text: error.message }));
      last = answer.text;
      return answer.isWell;
    };
    await eventually(`port ${port} to be healthy`, isWell).catch((error: Error) => {
      throw new Error(`${error.message} ${last}`);
    });
  }
}

/** Asks a node or an edge whether it is well. Rejects without an answer. */
async function askReadiness(port: number): Promise<{ isWell: boolean; text: string }> {
  const response = await fetch(`http://127.0.0.1:${port}/health/ready`, { signal: AbortSignal.timeout(5_000) });
  const text = await response.text();
  return { isWell: response.status === 200 && JSON.parse(text).status === "ok", text };
}

/** Measures how late this process runs, how long each node and edge takes for the simplest answer, and when it is well. */
function measure(fleet: Fleet, { nodes, edges }: Timelines): { stop(): Promise<void> } {
  let isOver = false;
  const own = async () => {
    while (!isOver) {
      const at = systemClock.monotonic();
      await setTimeout(20);
      const now = systemClock.monotonic();
      for (const timeline of [nodes, edges]) timeline.recordLag(undefined, now, now - at - 20);
    }
  };
  const of = async (timeline: Timeline, { port, index }: FleetProgram) => {
    while (!isOver) {
      const at = systemClock.monotonic();
      try {
        const { isWell } = await askReadiness(port);
        timeline.recordLag(index, systemClock.monotonic(), systemClock.monotonic() - at);
        if (isWell) timeline.recordWell(index, at);
      } catch {
        // It is down or frozen.
      }
      await setTimeout(200);
    }
  };
  const loops = [own(), ...fleet.nodes.map((node) => of(nodes, node)), ...fleet.edges.map((edge) => of(edges, edge))];
  return {
    async stop() {
      isOver = true;
      await Promise.all(loops);
    },
  };
}

/** Notices nodes and edges that end although no fault ended them. */
function watch(fleet: Fleet, problems: Counts): { stop(): void } {
  const reported = new Set<object>();
  const timer = setInterval(() => {
    for (const { server, port } of [...fleet.nodes, ...fleet.edges]) {
      if (!server?.hasEnded || reported.has(server)) continue;
      reported.add(server);
      problems.add([`${server.address || port} ended by itself:\n${server.output.slice(-2_000)}`]);
    }
  }, 50);
  return { stop: () => clearInterval(timer) };
}

/** Asks every node for keys that exist and keys that do not. */
async function verifyAll(fleet: Fleet, journal: Journal): Promise<void> {
  const SAMPLE = 200;
  const acknowledged = journal.keys.filter(({ key, deletion }) => key !== undefined && deletion !== "open");
  for (const { server, index } of fleet.nodes) {
    if (!server || server.hasEnded) continue;
    for (const { key, keyId, deletion } of acknowledged.slice(-SAMPLE)) {
      const sentAt = systemClock.monotonic();
      const { code } = await server.ok("keys.verifyKey", { key });
      if (deletion === "acknowledged") {
        const isAccepted = code === "VALID";
        journal.revoked.push({ keyId: keyId!, node: index, revokedAt: 0, isOwn: false, sentAt, isAccepted });
      } else {
        journal.knownVerifications++;
        if (code === "VALID") continue;
        const data = { code, keyId };
        journal.denials.push({
          operation: "keys.verifyKey",
          status: 200,
          node: index,
          problem: "",
          data,
          sentAt,
          answeredAt: sentAt,
        });
      }
    }
  }
}

/** Operations, and what a journal calls their changes; an update is described by what it changed. */
const kindOfOperation: Readonly<Record<string, string>> = {
  "keys.createKey": "created",
  "keys.deleteKey": "deleted",
  "keys.updateCredits": "credits",
  "budgets.updateCredits": "credits",
};

const kindOfEvent: Readonly<Record<string, string>> = { "key.created": "created", "key.deleted": "deleted" };

/** The id of the newest event of a change of a key or a budget. */
async function lastChange(fleet: Fleet): Promise<string | undefined> {
  const types = "'key.created', 'key.updated', 'key.deleted', 'budget.updated'";
  const rows = await fleet.query(`select id from events where type in (${types}) order by number desc limit 1`);
  return rows[0]?.id;
}

/**
 * Resolves when every hold whose time has passed at the beginning has expired, or after some seconds: the books judge that.
 * Returns that time.
 */
async function waitForExpiries(fleet: Fleet): Promise<number> {
  const [{ at }] = await fleet.query("select extract(epoch from clock_timestamp()) * 1000 as at");
  const deadline = systemClock.monotonic() + EXPIRIES_MS * busyness();
  const due = `select from holds where state = 'open' and expires_at < ${at} limit 1`;
  while ((await fleet.query(due)).length > 0 && systemClock.monotonic() < deadline) await setTimeout(250);
  return Number(at);
}

/** The valid verifications of each key in the statistics. */
async function readVerifications(fleet: Fleet): Promise<Map<string, number>> {
  const rows = await fleet.query(
    `select subject, sum(count) as count from (
       select subject, count from analytics_minutes where part = '' and outcome = 'VALID'
       union all
       select subject, analytics_segment_rows.count from analytics_segment_rows
         join analytics_segments on analytics_segments.id = segment where merged_to is null and outcome = 'VALID'
     ) counted group by subject`,
  );
  return new Map(rows.map(({ subject, count }) => [subject, Number(count)]));
}

/** Resolves when each verification that edges have answered is in the statistics, or after some seconds: the books judge that. */
async function waitForCounts(fleet: Fleet, { edges: { counted } }: Journal): Promise<void> {
  const deadline = systemClock.monotonic() + COUNTS_MS * busyness();
  const isThere = (stored: Map<string, number>) =>
    counted.every(({ keyId, answeredAt }) => (stored.get(keyId) ?? 0) >= answeredAt.length);
  while (!isThere(await readVerifications(fleet)) && systemClock.monotonic() < deadline) await setTimeout(250);
}

async function readDatabase(fleet: Fleet, expiredBy: number): Promise<DatabaseState> {
  const rows = await fleet.query(
    `select keys.id, name, meta, deleted_at is not null as "isDeleted", remaining
     from keys left join balances using (pool_id)`,
  );
  const budgets = await fleet.query(
    "select id, remaining, held, granted, spent, lapsed from budgets join balances on pool_id = budgets.id",
  );
  const holds = await fleet.query("select id, state, cost, charged, uncovered, balances, lacks, expires_at from holds");
  const slots = await fleet.query("select pool_id, held from balances where pool_id like 'slots%'");
  const audited = await fleet.query(
    "select action, targets, meta, occurred_at, xmin from audit_events order by occurred_at, id",
  );
  const described = audited.map(({ action, targets, meta, occurred_at, xmin }) => {
    const { after } = JSON.parse(meta);
    const at = new Date(Number(occurred_at)).toISOString();
    const change: AuditedChange = {
      kind: action === "keys.updateKey" ? after && kindOfMembers(Object.keys(after)) : kindOfOperation[action],
      name: action === "keys.updateKey" ? after?.name : undefined,
      text: `audit: ${action} ${meta}, ${at}, transaction ${xmin}`,
    };
    return { objectId: JSON.parse(targets)[0] as string, change };
  });
  const byObject = Map.groupBy(described, ({ objectId }) => objectId);
  const events = await fleet.query("select id, type, object_id, data from events order by number");
  return {
    verifications: await readVerifications(fleet),
    audit: new Map([...byObject].map(([objectId, entries]) => [objectId, entries.map(({ change }) => change)])),
    events: events.map(({ id, type, object_id: objectId, data }) => ({
      id,
      objectId,
      kind:
        type === "key.updated" || type === "budget.updated"
          ? kindOfMembers(JSON.parse(data).changed)
          : kindOfEvent[type],
    })),
    slots: slots.map(({ pool_id: id, held }) => ({ id, held: Number(held ?? 0) })),
    holds: holds.map(({ id, state, cost, charged, uncovered, balances, lacks, expires_at }) => ({
      ...{ id, state, isOverdue: state === "open" && Number(expires_at) < expiredBy },
      cost: Number(cost),
      charged: Number(charged ?? 0),
      uncovered: Number(uncovered ?? 0),
      balances: JSON.parse(balances).map((balance: { id: string }) => balance.id),
      lacks: lacks === null ? [] : JSON.parse(lacks),
    })),
    budgets: budgets.map(({ id, remaining, held, granted, spent, lapsed }) => ({
      id,
      remaining: Number(remaining),
      held: Number(held ?? 0),
      granted: Number(granted),
      spent: Number(spent),
      lapsed: Number(lapsed),
    })),
    keys: rows.map(({ id, name, meta, isDeleted, remaining }) => ({
      id,
      name,
      isDeleted,
      marker: meta === null ? undefined : JSON.parse(meta).marker,
      remaining: remaining === null ? undefined : Number(remaining),
    })),
  };
}

/** How a journal calls a change of these members. */
function kindOfMembers(members: readonly string[]): string {
  return members.toSorted().join();
}

function tally(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** Whether nothing is wrong in any book. */
export function isBalanced({ books }: ChaosReport): boolean {
  return books.every(({ wrong }) => wrong === 0);
}

/** `right` only if each promise was compared often enough. */
export function verdictOf(report: ChaosReport): "right" | "wrong" | "unknown" {
  if (!isBalanced(report)) return "wrong";
  return report.books.every(({ compared, floor }) => compared >= floor) ? "right" : "unknown";
}

/** The report as text, one book per line. */
export function describeReport(report: ChaosReport): string {
  const { options, faults, missing, statuses, lengthMs, worstLagMs, books } = report;
  const calls = [...statuses.values()].reduce((all, count) => all + count, 0);
  const counted = (counts: Map<string, number>) =>
    [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${count} × ${name}`);
  const threads = options.workers === 1 ? "1 thread" : `${options.workers} threads`;
  const width = Math.max(...books.map(({ title }) => title.length));
  const columns = (...cells: unknown[]) => cells.map((cell) => String(cell).padStart(10)).join("");
  const verdict = verdictOf(report);
  const poor = books.filter(({ compared, floor }) => compared < floor);
  return [
    `chaos: seed ${options.seed}, ${(lengthMs / 1_000).toFixed(0)} s, ${options.nodes} nodes of ${threads}, ${options.edges} edges, policy ${options.policy}`,
    `calls: ${calls}, ${Math.round(calls / (lengthMs / 1_000))} a second: ${counted(statuses).join(", ")}`,
    `longest delay of this machine: ${Math.round(worstLagMs)} ms`,
    `faults: ${[...faults.values()].reduce((all, count) => all + count, 0)}`,
    ...counted(faults).map((line) => `  ${line}`),
    ...missing.map((line) => `  not on this machine: ${line}`),
    ...(options.plant
      ? [`planted: ${options.plant.what}${report.isPlanted ? "" : ", which did not happen: there were too few calls"}`]
      : []),
    "",
    `${"".padEnd(width)}${columns("calls", "compared", "at least", "wrong")}`,
    ...books.flatMap(({ title, calls, compared, unit, floor, wrong, findings, excused }) => [
      `${title.padEnd(width)}${columns(calls, compared, floor, wrong)}  ${unit}`,
      ...(excused ? [`    ${excused} are not counted: this machine was too slow at that time`] : []),
      ...findings.map((finding) => `    ${finding}`),
    ]),
    "",
    ...poor.map(
      ({ title, compared, unit, floor }) => `not enough compared: ${title}: ${compared} of at least ${floor} ${unit}`,
    ),
    verdict === "right"
      ? "The books add up."
      : verdict === "wrong"
        ? "The books do not add up."
        : "Nothing wrong was found, but too little was compared to say that the books add up. Run it for longer.",
  ].join("\n");
}
