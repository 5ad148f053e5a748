/** The promises of edges. None of them allows more because something fails. */
import type { DatabaseState } from "./books.ts";
import { type Book, Count } from "./count.ts";
import { EDGE_KILL } from "./faults.ts";
import type { JournalCounted, JournalEdges } from "./journal.ts";
import type { Timeline } from "./timeline.ts";

/** How long a revoked key is accepted at most, in ms, whatever fails. */
const REVOCATION_MS = 1_000;
/** How often an edge writes its counts, in ms. */
const COUNTS_WRITE_MS = 1_000;
/** Allowance for timers and the disk of the machine, in ms. */
const SLACK_MS = 500;

export function edgeBooks(edges: JournalEdges, database: DatabaseState, timeline: Timeline): Book[] {
  return [revocations(edges), spends(edges, database), counts(edges, database, timeline)];
}

/** What counts is when the caller has sent its call, and when it knew of the revocation: so no lag is an excuse. */
function revocations({ revoked }: JournalEdges): Book {
  const book = new Count("revoked keys accepted by edges after a second", "keys at an edge");
  const compared = new Set<string>();
  for (const { keyId, edge, revokedAt, sentAt, isAccepted } of revoked) {
    const age = sentAt - revokedAt;
    if (age <= REVOCATION_MS) continue;
    const pair = `${keyId} ${edge}`;
    book.add(compared.has(pair) ? 0 : 1, 1);
    compared.add(pair);
    book.expect(!isAccepted, () => `${keyId}: edge ${edge} accepted it ${Math.round(age)} ms after its deletion`);
  }
  return book;
}

/** Each call found the balance that the one before it had left, and the last one left what is stored. */
function spends({ pools }: JournalEdges, { keys }: DatabaseState): Book {
  const book = new Count("credits spent at edges twice, minted or lost", "spends");
  const stored = new Map(keys.map(({ id, remaining }) => [id, remaining]));
  for (const { id, initial, moves = [], openCalls, openSpent } of pools) {
    let left = initial;
    for (const { before, after } of moves) {
      book.expect(before === left, () => `a call found ${before} credits of ${id}, and the one before it left ${left}`);
      left = after;
    }
    const remaining = stored.get(id);
    const isUnspent = remaining === left;
    const isSpent = openCalls > 0 && remaining === left - openSpent;
    book.add(moves.length + openCalls);
    const finding = () =>
      `${id} has ${remaining}, and its calls left ${left}${openCalls > 0 ? ` or ${openSpent} less` : ""}`;
    book.expect(isUnspent || isSpent, finding);
  }
  return book;
}

/** Each verification that an edge decided is in the statistics once, but for those of the last second before it was killed. */
function counts({ counted }: JournalEdges, { verifications }: DatabaseState, timeline: Timeline): Book {
  const book = new Count("verifications of edges counted twice, or not at all", "verifications");
  for (const key of counted) {
    const { keyId, edge, answeredAt, open } = key;
    const stored = verifications.get(keyId) ?? 0;
    const most = answeredAt.length + open;
    const least = answeredAt.length - forgotten(key, timeline);
    book.add(answeredAt.length);
    const finding = () => `${keyId}: edge ${edge} answered ${least} to ${most} calls, and ${stored} are counted`;
    book.expect(stored >= least, finding, least - stored);
    book.expect(stored <= most, finding, stored - most);
  }
  return book;
}

/** How many answers were given in the last second before the edge was killed. */
function forgotten({ edge, answeredAt }: JournalCounted, timeline: Timeline): number {
  const kills = timeline.disturbances.filter(({ what, node }) => what === EDGE_KILL && node === edge);
  return answeredAt.filter((at) =>
    kills.some(({ from }) => {
      const lag = timeline.lag(edge, from - COUNTS_WRITE_MS - SLACK_MS, from);
      return at >= from - COUNTS_WRITE_MS - SLACK_MS - 2 * lag && at <= from + SLACK_MS;
    }),
  ).length;
}
