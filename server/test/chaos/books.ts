import { mostAtOnce } from "../admissions.ts";
import { type Book, Count } from "./count.ts";
import { edgeBooks } from "./edge-books.ts";
import { KILL } from "./faults.ts";
import { holds, type StoredHold } from "./hold-books.ts";
import {
  type Journal,
  type JournalBalance,
  type JournalKey,
  type JournalLimit,
  type Source,
  sourceOf,
  windowOf,
} from "./journal.ts";
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
  budgets: { id: string; remaining: number; held: number; granted: number; spent: number; lapsed: number }[];
  holds: StoredHold[];
  slots: { id: string; held: number }[];
  /** The changes of each key and budget in the audit log, in no certain order. */
  audit: ReadonlyMap<string, AuditedChange[]>;
  /** All events in the order of their numbers. */
  events: StoredEvent[];
  /** Valid verifications in the statistics, by key. */
  verifications: ReadonlyMap<string, number>;
}

/** A change as the audit log has it: what was committed when. */
export interface AuditedChange {
  /** In the words of a `JournalChange`; "credits" for a change of a balance; undefined if it changed nothing. */
  kind: string | undefined;
  /** The name that it gave. */
  name: string | undefined;
  text: string;
}

export interface StoredEvent {
  id: string;
  objectId: string;
  /** In the words of a `JournalChange`; undefined for events of other kinds. */
  kind: string | undefined;
}

export interface Promises {
  policy: "closed" | "local";
  nodes: number;
  edges: number;
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

/** When which node, and which edge, was disturbed. What hits nodes can be felt at every edge. */
export interface Timelines {
  nodes: Timeline;
  edges: Timeline;
}

/** Compares what clients were told with the database, and with the promises of the service. */
export function balance(
  journal: Journal,
  database: DatabaseState,
  { nodes: timeline, edges }: Timelines,
  promises: Promises,
): Book[] {
  return [
    ...writes(journal, database),
    ...credits(journal.pools, database.keys, ""),
    ...credits(journal.budgets, database.budgets, " of budgets"),
    ...budgets(journal, database),
    ...holds(journal.holds, database),
    ...events(journal, database),
    limits(journal.limits, timeline, promises),
    revocations(journal, timeline, promises),
    ...(promises.edges === 0 ? [] : edgeBooks(journal.edges, database, edges)),
    denials(journal),
    ...failures(journal, { nodes: timeline, edges }),
    recoveries(timeline, promises),
  ];
}

function writes({ keys, pools, budgets }: Journal, database: DatabaseState): Book[] {
  const lost = new Count("acknowledged writes lost", "writes");
  const doubled = new Count("calls executed twice", "creations and additions");
  const byMarker = Map.groupBy(database.keys, ({ marker }) => marker);
  for (const key of keys) {
    const { marker, keyId, name, openNames, deletion, changes } = key;
    const rows = byMarker.get(marker) ?? [];
    const audited = (id: string) => database.audit.get(id) ?? [];
    const describe = (id: string) => [
      ...changes.map(({ description }) => description),
      ...audited(id).map(({ text }) => text),
    ];
    doubled.add(1);
    doubled.expect(rows.length <= 1, () =>
      [`the call ${marker} made ${rows.length} keys`, ...rows.flatMap(({ id }) => describe(id))].join("\n      "),
    );
    if (keyId === undefined) continue;
    lost.add(changes.filter(({ isAcknowledged }) => isAcknowledged).length);
    const row = rows.find(({ id }) => id === keyId);
    lost.expect(row !== undefined, () => `${keyId} does not exist`);
    if (!row) continue;
    lost.expect([name, ...openNames].includes(row.name!), () =>
      [`${keyId} is named ${row.name}, not ${name}`, ...describe(keyId)].join("\n      "),
    );
    const names = new Set(audited(keyId).map((change) => change.name));
    for (const { name, isAcknowledged } of changes) {
      if (!isAcknowledged || name === undefined) continue;
      const finding = () => [`${keyId} was never named ${name}`, ...describe(keyId)].join("\n      ");
      lost.expect(names.has(name), finding);
    }
    if (deletion === "acknowledged") lost.expect(row.isDeleted, () => `${keyId} is not deleted`);
    else if (deletion === "none") lost.expect(!row.isDeleted, () => `${keyId} is deleted`);
  }
  for (const { id, additions, openAdditions } of [...pools, ...budgets]) {
    const executed = creditChanges(database.audit.get(id));
    doubled.add(additions);
    const excess = executed - additions - openAdditions;
    doubled.expect(excess <= 0, () => `${additions} calls added to ${id}, ${executed} times`, excess);
  }
  return [lost, doubled];
}

/** A balance whose calls all have a known outcome is compared to the credit. Another one only shows what exceeds its range. */
function credits(
  balances: readonly JournalBalance[],
  rows: readonly { id: string; remaining: number | undefined }[],
  whose: string,
): Book[] {
  const lost = new Count(`credits${whose} lost`, "spends and additions");
  const minted = new Count(`credits${whose} minted`, "spends and additions");
  const unexplained = new Count(`balances${whose} that no call left`, "spends and additions");
  const stored = new Map(rows.map(({ id, remaining }) => [id, remaining]));
  for (const balance of balances) {
    const remaining = stored.get(balance.id) ?? Number.NaN;
    const { from, to } = expectedBalance(balance);
    const describe = () =>
      `${balance.id} has ${remaining}, and the calls leave ${from === to ? from : `${from} to ${to}`}`;
    if (from === to) for (const book of [lost, minted]) book.add(balance.calls);
    lost.expect(remaining >= from, describe, from - remaining || 1);
    minted.expect(remaining <= to, describe, remaining - to || 1);
    if (balance.moves) explainMoves(unexplained, balance, balance.moves);
  }
  return [lost, minted, unexplained];
}

/** No budget that denies was spent beyond what it had, and the books of each are what clients were told. */
function budgets({ budgets }: Journal, database: DatabaseState): Book[] {
  const overspent = new Count("budgets overspent", "calls of budgets that refused some");
  const wrong = new Count("books of budgets that do not add up, or differ from the answers", "spends and additions");
  const rows = new Map(database.budgets.map((row) => [row.id, row]));
  for (const { id, initial, spent, added, openSpent, openAdded, calls, isDenying, refused } of budgets) {
    const had = initial + added;
    if (isDenying) {
      if (refused > 0) overspent.add(calls + refused);
      const most = had + openAdded;
      overspent.expect(spent <= most, () => `${spent} credits of ${id} were spent, which had ${most}`, spent - most);
    }
    wrong.add(calls);
    const row = rows.get(id);
    wrong.expect(row !== undefined, () => `${id} does not exist`);
    if (row === undefined) continue;
    const { granted, spent: booked, held, lapsed, remaining } = row;
    wrong.expect(
      granted === booked + held + lapsed + remaining &&
        booked >= spent &&
        booked <= spent + openSpent &&
        granted >= had &&
        granted <= had + openAdded,
      () =>
        `${id} was granted ${granted}: ${booked} spent, ${lapsed} lapsed, ${remaining} left. Clients were granted ${had} and ` +
        `spent ${spent}, and ${openAdded} and ${openSpent} without a known outcome`,
    );
  }
  return [overspent, wrong];
}

/**
 * The balance that each call found is the initial one or was left by another call, and no two calls found the same one. The
 * last balance is compared with the database elsewhere, so a fault shows even if a later one hides it there.
 */
function explainMoves(
  book: Count,
  { id, initial, openCalls }: JournalBalance,
  moves: NonNullable<JournalBalance["moves"]>,
): void {
  book.add(moves.length);
  const left = new Map<number, number>([[initial, 1]]);
  for (const { after } of moves) left.set(after, (left.get(after) ?? 0) + 1);
  // Calls without a known outcome have left balances too.
  let unknown = openCalls;
  for (const { before } of moves) {
    const count = left.get(before) ?? 0;
    const isExplained = count > 0 || unknown-- > 0;
    book.expect(isExplained, () => `a call found ${before} credits of ${id}, which no other call had left`);
    if (count > 0) left.set(before, count - 1);
  }
}

/** The balance that the calls leave; a range if the outcome of some is unknown. */
function expectedBalance({ initial, added, spent, openAdded, openSpent }: JournalBalance): {
  from: number;
  to: number;
} {
  const known = initial + added - spent;
  return { from: known - openSpent, to: known + openAdded };
}

/**
 * An aligned window admits its limit. A trailing duration admits at most the limit if it is strict, and at most twice the limit
 * else. While Redis is away under `local`, each node counts alone, and one that was killed has
 * forgotten its last second.
 */
function limits(all: readonly JournalLimit[], timeline: Timeline, { policy, nodes }: Promises): Book {
  const factor = policy === "local" ? nodes : 1;
  const promise = policy === "local" ? `${nodes} × the limit under "local"` : 'none under "closed"';
  const book = new Count(`admissions over limits (${promise})`, "windows that calls overran");
  for (const limit of all) {
    const isEndless = limit.duration > 86_400_000;
    const forgotten = policy === "local" ? forgottenBy(limit, timeline) : 0;
    const inWindow = limit.limit * factor + forgotten;
    const overrun = [...limit.demand.values()].filter((cost) => cost > inWindow);
    book.add(overrun.length, limit.calls);
    const expectAtMost = (admitted: number, allowed: number, where: string) =>
      book.expect(admitted <= allowed, () => `${limit.name}: ${admitted} of ${allowed}${where}`, admitted - allowed);
    if (isEndless) {
      expectAtMost(sum(limit.admissions), inWindow, "");
      continue;
    }
    if (limit.mode === "standard") {
      for (const [window, admissions] of Map.groupBy(limit.admissions, (one) => windowOf(limit, one))) {
        expectAtMost(sum(admissions), inWindow, ` until ${new Date(window).toISOString()}`);
      }
    }
    const trailing = limit.limit * factor * (limit.mode === "strict" ? 1 : 2) + forgotten;
    expectAtMost(mostAtOnce(limit.admissions, limit.duration), trailing, ` in ${limit.duration} ms`);
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
      // An edge does not say which node has admitted its call.
      if ((by === node || by === undefined) && answeredAt >= writtenAt && answeredAt <= killedAt + SLACK_MS)
        forgotten += cost;
    }
  }
  return forgotten;
}

function sum(admissions: JournalLimit["admissions"]): number {
  return admissions.reduce((all, { cost }) => all + cost, 0);
}

/** Only an answer after the bound proves something. A node that has acknowledged a deletion itself has none. */
function revocations({ revoked }: Journal, timeline: Timeline, { staleMaxMs }: Promises): Book {
  const book = new Count("revoked keys accepted after the bound", "keys on a node");
  const compared = new Set<string>();
  for (const { keyId, node, revokedAt, isOwn, sentAt, isAccepted } of revoked) {
    const age = sentAt - revokedAt;
    const lag = 2 * timeline.lag(node, revokedAt, sentAt) + SLACK_MS;
    const isCutOff = timeline.isDisturbed(node, revokedAt, sentAt);
    const bound = isOwn ? 0 : (isCutOff ? staleMaxMs + REVOCATION_MS : REVOCATION_MS) + lag;
    if (age < bound) continue;
    const pair = `${keyId} ${node}`;
    book.add(compared.has(pair) ? 0 : 1, 1);
    compared.add(pair);
    book.expect(!isAccepted, () => `${keyId}: node ${node} accepted it ${Math.round(age)} ms after its deletion`);
  }
  return book;
}

function denials({ denials, knownVerifications }: Journal): Book {
  const book = new Count("known keys rejected", "verifications");
  book.add(knownVerifications);
  for (const { data, node } of denials)
    book.expect(false, () => `node ${node} answered ${data.code} for ${data.keyId ?? "a key"}`);
  return book;
}

/** Status 500 and unexpected ones never; 503, and no answer, only while a part of the fleet fails or recovers. */
function failures({ failures: all, answers }: Journal, timelines: Timelines): Book[] {
  const place = (source: Source) =>
    typeof source === "string"
      ? { timeline: timelines.edges, index: Number(source.replace("edge ", "")) }
      : { timeline: timelines.nodes, index: source };
  const broken = new Count("replies 500, and other unexpected ones", "answers");
  const outside = new Count("replies 502, 503 and 504, and none at all, without a fault", "answers without a fault");
  const busy = new Count("replies 409 and 429 without a fault", "answers without a fault");
  for (const [source, bySecond] of answers) {
    const { timeline, index } = place(source);
    for (const [second, count] of bySecond) {
      broken.add(count);
      if (timeline.isDisturbed(index, second * 1_000, (second + 1) * 1_000)) continue;
      outside.add(count);
      busy.add(count);
    }
  }
  for (const answer of all) {
    const { operation, status, node, edge, problem, sentAt, answeredAt } = answer;
    const where = edge === undefined ? `node ${node ?? "?"}` : `edge ${edge}`;
    const finding = () => `${operation}: ${status || "no answer"} ${problem} (${where})`;
    const { timeline, index } = place(sourceOf(answer));
    const isExplained = timeline.isDisturbed(status === 409 ? undefined : index, sentAt, answeredAt);
    if (![0, 409, 429, 502, 503, 504].includes(status)) broken.expect(false, finding);
    else {
      const book = status === 409 || status === 429 ? busy : outside;
      const isExcused = !isExplained && timeline.isOverloaded(sentAt, answeredAt);
      if (isExcused) book.excused++;
      book.expect(isExplained || isExcused, finding);
    }
  }
  return [outside, broken, busy];
}

/** Each acknowledged change has its event, once and in order; and who follows the events gets each of them, once and in order. */
function events({ keys, pools, budgets, followed }: Journal, { events, audit }: DatabaseState): Book[] {
  const counts = new Count("changes without their event, or with several", "changes");
  const order = new Count("events out of order", "events of acknowledged changes");
  const byObject = Map.groupBy(events, ({ objectId }) => objectId);
  for (const key of keys) {
    if (key.keyId === undefined) continue;
    const kinds = kindsOf(byObject.get(key.keyId) ?? []);
    const audited = kindsOf(audit.get(key.keyId) ?? []);
    const changes = key.changes.filter(({ isAcknowledged }) => isAcknowledged).map(({ kind }) => kind);
    const describe = (what: string) => () =>
      [
        `${key.keyId} ${what}: the events are ${kinds.join(" ")}; acknowledged were ${changes.join(" ")}`,
        ...key.changes.map(({ description }) => description),
      ].join("\n      ");
    counts.add(changes.length);
    order.add(changes.length);
    const isComplete = areEqual(tally(kinds), tally(audited)) && hasEach(kinds, key);
    counts.expect(isComplete, describe("lacks an event or has one too many"));
    if (isComplete) order.expect(isSubsequence(changes, kinds), describe("has events in a wrong order"));
  }
  for (const { id } of [...pools, ...budgets]) {
    const [told, audited] = [creditChanges(byObject.get(id)), creditChanges(audit.get(id))];
    counts.add(audited);
    const finding = () => `${id} was charged up ${audited} times, and has ${told} events of that`;
    counts.expect(told === audited, finding, Math.abs(told - audited));
  }
  return [counts, order, following(followed, events)];
}

/** The events that were followed are those of the database, to the last one that was read, and to the last one of a change. */
function following(followed: readonly string[], events: readonly StoredEvent[]): Book {
  const book = new Count("events that a follower missed, got twice or in another order", "events");
  book.add(followed.length, 0);
  const end = Math.max(
    events.findLastIndex(({ kind }) => kind !== undefined),
    events.findLastIndex(({ id }) => id === followed.at(-1)),
  );
  const expected = events.slice(0, end + 1).map(({ id }) => id);
  const [known, read] = [new Set(expected), tally(followed)];
  for (const id of expected) book.expect(read.has(id), () => `${id} was not read`);
  for (const [id, count] of read) {
    book.expect(count === 1, () => `${id} was read ${count} times`, count - 1);
    book.expect(known.has(id), () => `${id} was read, and does not exist`);
  }
  if (book.wrong > 0) return book;
  const at = followed.findIndex((id, i) => id !== expected[i]);
  book.expect(at === -1, () => `${followed[at]} was read before ${expected[at]}`);
  return book;
}

/** How many of them changed a balance. */
function creditChanges(of: readonly { kind: string | undefined }[] = []): number {
  return of.filter(({ kind }) => kind === "credits").length;
}

function kindsOf(entries: readonly { kind: string | undefined }[]): string[] {
  return entries.flatMap(({ kind }) => kind ?? []);
}

/** Whether each acknowledged change has an event, and no change has more than attempts. */
function hasEach(kinds: readonly string[], { changes }: JournalKey): boolean {
  const [told, least, most] = [tally(kinds), new Map<string, number>(), new Map<string, number>()];
  const add = (to: Map<string, number>, kind: string, count: number) => to.set(kind, (to.get(kind) ?? 0) + count);
  let executionsMax = 0;
  for (const { kind, isAcknowledged, attempts } of changes) {
    // Of a creation and a deletion, repetitions have no effect.
    const executions = kind === "created" || kind === "deleted" ? 1 : attempts;
    executionsMax += executions;
    add(least, kind, Number(isAcknowledged));
    add(most, kind, executions);
    // An attempt that is executed late sets back what was changed meanwhile, which can be one of its fields.
    const fields = kind.split(",");
    if (fields.length > 1) for (const field of fields) add(most, field, executions - 1);
  }
  return (
    kinds.length <= executionsMax &&
    [...least].every(([kind, count]) => (told.get(kind) ?? 0) >= count) &&
    [...told].every(([kind, count]) => count <= (most.get(kind) ?? 0))
  );
}

function isSubsequence(part: readonly string[], whole: readonly string[]): boolean {
  let at = 0;
  for (const item of whole) if (item === part[at]) at++;
  return at === part.length;
}

function tally(items: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return counts;
}

function areEqual(some: ReadonlyMap<string, number>, others: ReadonlyMap<string, number>): boolean {
  return some.size === others.size && [...some].every(([item, count]) => others.get(item) === count);
}

/** After a repair, each node that the fault hit is well in time. */
function recoveries(timeline: Timeline, { endedAt }: Promises): Book {
  const book = new Count(`nodes not well ${RECOVERY_MAX_MS / 1_000} s after a repair`, "recoveries", 1);
  for (const { what, node, ms, lagMs } of timeline.recoveries(endedAt)) {
    book.add(1, 0);
    const finding = () => `node ${node} was not well for ${(ms / 1_000).toFixed(1)} s: ${what}`;
    book.expect(ms <= RECOVERY_MAX_MS + 2 * lagMs, finding);
  }
  return book;
}
