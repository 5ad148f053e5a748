import { mostAtOnce } from "../admissions.ts";
import { KILL } from "./faults.ts";
import type { Answer, Journal, JournalLimit, JournalPool } from "./journal.ts";
import { RECOVERY_MAX_MS, type Timeline } from "./timeline.ts";

/** What the database contains at the end, read without the service. */
export interface DatabaseState {
  keys: {
    id: string;
    name: string | null;
    marker: string | undefined;
    isDeleted: boolean;
    remaining: number | undefined;
  }[];
  /** The audit log by key: what was committed when. */
  audit: ReadonlyMap<string, readonly string[]>;
}

/** One promise: how many things were compared, and how much of it is wrong. */
export interface Book {
  title: string;
  checked: number;
  wrong: number;
  /** The first of what is wrong. */
  findings: string[];
  /** Faults that are not counted, because the machine was too slow at that time. */
  excused?: number;
}

export interface Promises {
  policy: "closed" | "local";
  nodes: number;
  staleMaxMs: number;
  /** When the observation of the nodes ended, by the monotonic clock in ms. */
  endedAt: number;
}

/** How long a revoked key is accepted at most by a node that reaches the database, in ms. */
const REVOCATION_MS = 1_000;
/** How often a node writes its counters, in ms. */
const COUNTER_WRITE_MS = 1_000;
/** Allowance for timers and the network of the machine, in ms. */
const SLACK_MS = 250;
const FINDINGS_MAX = 8;

/** Compares what clients were told with the database, and with the promises of the service. */
export function balance(journal: Journal, database: DatabaseState, timeline: Timeline, promises: Promises): Book[] {
  return [
    ...writes(journal, database),
    ...credits(journal, database),
    limits(journal.limits, timeline, promises),
    revocations(journal, timeline, promises),
    denials(journal),
    ...failures(journal.failures, timeline),
    recoveries(timeline, promises),
  ];
}

class Count implements Book {
  checked = 0;
  wrong = 0;
  readonly findings: string[] = [];
  readonly title: string;
  /** How many were excused because the machine was too slow. */
  excused = 0;

  constructor(title: string) {
    this.title = title;
  }

  check(isRight: boolean, finding: () => string, amount = 1): void {
    this.checked++;
    if (isRight) return;
    this.wrong += amount;
    if (this.findings.length < FINDINGS_MAX) this.findings.push(finding());
  }
}

function writes({ keys }: Journal, database: DatabaseState): Book[] {
  const lost = new Count("acknowledged writes lost");
  const doubled = new Count("calls executed twice");
  const byMarker = Map.groupBy(database.keys, ({ marker }) => marker);
  for (const { marker, keyId, name, openNames, deletion, history } of keys) {
    const rows = byMarker.get(marker) ?? [];
    doubled.check(rows.length <= 1, () =>
      [`the call ${marker} made ${rows.length} keys`, ...rows.flatMap(({ id }) => database.audit.get(id) ?? [])].join(
        "\n      ",
      ),
    );
    if (keyId === undefined) continue;
    const row = rows.find(({ id }) => id === keyId);
    lost.check(row !== undefined, () => `${keyId} does not exist`);
    if (!row) continue;
    lost.check([name, ...openNames].includes(row.name!), () =>
      [`${keyId} is named ${row.name}, not ${name}`, ...history, ...(database.audit.get(keyId) ?? [])].join("\n      "),
    );
    if (deletion === "acknowledged") lost.check(row.isDeleted, () => `${keyId} is not deleted`);
    else if (deletion === "none") lost.check(!row.isDeleted, () => `${keyId} is deleted`);
  }
  return [lost, doubled];
}

function credits({ pools }: Journal, database: DatabaseState): Book[] {
  const lost = new Count("credits lost");
  const minted = new Count("credits minted");
  const rows = new Map(database.keys.map((row) => [row.id, row]));
  for (const pool of pools) {
    const remaining = rows.get(pool.keyId)?.remaining ?? Number.NaN;
    const { from, to } = expectedBalance(pool);
    const describe = () =>
      `${pool.keyId} has ${remaining}, and the calls leave ${from === to ? from : `${from} to ${to}`}`;
    lost.check(remaining >= from, describe, from - remaining || 1);
    minted.check(remaining <= to, describe, remaining - to || 1);
  }
  return [lost, minted];
}

/** The balance that the calls leave; a range if the outcome of some is unknown. */
function expectedBalance({ initial, added, spent, openAdded, openSpent }: JournalPool): { from: number; to: number } {
  const known = initial + added - spent;
  return { from: known - openSpent, to: known + openAdded };
}

/**
 * A window that does not end during the run admits its limit. A trailing duration admits at most the limit if it is strict,
 * and at most twice the limit else. While Redis is away under `local`, each node counts alone, and one that was killed has
 * forgotten its last second.
 */
function limits(all: readonly JournalLimit[], timeline: Timeline, { policy, nodes }: Promises): Book {
  const factor = policy === "local" ? nodes : 1;
  const promise = policy === "local" ? `${nodes} × the limit under "local"` : 'none under "closed"';
  const book = new Count(`admissions over limits (${promise})`);
  for (const limit of all) {
    const isEndless = limit.duration > 86_400_000;
    const admitted = isEndless ? sum(limit) : mostAtOnce(limit.admissions, limit.duration);
    const forgotten = policy === "local" ? forgottenBy(limit, timeline) : 0;
    const allowed = limit.limit * factor * (isEndless || limit.mode === "strict" ? 1 : 2) + forgotten;
    book.check(admitted <= allowed, () => `${limit.name}: ${admitted} of ${allowed}`, admitted - allowed);
  }
  return book;
}

/** What nodes that were killed had admitted since they last wrote their counters, at most. */
function forgottenBy({ admissions }: JournalLimit, timeline: Timeline): number {
  let forgotten = 0;
  for (const { what, node, from: killedAt } of timeline.disturbances) {
    if (what !== KILL) continue;
    const writtenAt = killedAt - COUNTER_WRITE_MS - SLACK_MS - 2 * timeline.lag(node, killedAt - 2_000, killedAt);
    for (const { node: by, cost, answeredAt } of admissions) {
      if (by === node && answeredAt >= writtenAt && answeredAt <= killedAt + SLACK_MS) forgotten += cost;
    }
  }
  return forgotten;
}

function sum({ admissions }: JournalLimit): number {
  return admissions.reduce((all, { cost }) => all + cost, 0);
}

function revocations({ revoked }: Journal, timeline: Timeline, { staleMaxMs }: Promises): Book {
  const book = new Count("revoked keys accepted after the bound");
  for (const { keyId, node, revokedAt, sentAt, isAccepted } of revoked) {
    const age = sentAt - revokedAt;
    const lag = 2 * timeline.lag(node, revokedAt, sentAt) + SLACK_MS;
    const isCutOff = timeline.isDisturbed(node, revokedAt, sentAt);
    const bound = (isCutOff ? staleMaxMs + REVOCATION_MS : REVOCATION_MS) + lag;
    book.check(
      !isAccepted || age <= bound,
      () => `${keyId}: node ${node} accepted it ${Math.round(age)} ms after its deletion`,
    );
  }
  return book;
}

function denials({ denials, knownVerifications }: Journal): Book {
  const book = new Count("known keys rejected");
  book.checked = knownVerifications - denials.length;
  for (const { data, node } of denials)
    book.check(false, () => `node ${node} answered ${data.code} for ${data.keyId ?? "a key"}`);
  return book;
}

/** Status 500 and unexpected ones never; 503, and no answer, only while a part of the fleet fails or recovers. */
function failures(all: readonly Answer[], timeline: Timeline): Book[] {
  const broken = new Count("replies 500, and other unexpected ones");
  const outside = new Count("replies 502, 503 and 504, and none at all, without a fault");
  const busy = new Count("replies 409 and 429 without a fault");
  for (const { operation, status, node, problem, sentAt, answeredAt } of all) {
    const finding = () => `${operation}: ${status || "no answer"} ${problem} (node ${node ?? "?"})`;
    const isExplained = timeline.isDisturbed(status === 409 ? undefined : node, sentAt, answeredAt);
    if (![0, 409, 429, 502, 503, 504].includes(status)) broken.check(false, finding);
    else {
      const book = status === 409 || status === 429 ? busy : outside;
      const isExcused = !isExplained && timeline.isOverloaded(sentAt, answeredAt);
      if (isExcused) book.excused++;
      book.check(isExplained || isExcused, finding);
    }
  }
  return [outside, broken, busy];
}

/** After a repair, each node that the fault hit is well in time. */
function recoveries(timeline: Timeline, { endedAt }: Promises): Book {
  const book = new Count(`nodes not well ${RECOVERY_MAX_MS / 1_000} s after a repair`);
  for (const { what, node, ms, lagMs } of timeline.recoveries(endedAt)) {
    const finding = () => `node ${node} was not well for ${(ms / 1_000).toFixed(1)} s: ${what}`;
    book.check(ms <= RECOVERY_MAX_MS + 2 * lagMs, finding);
  }
  return book;
}
