import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../clock/simulated.ts";
import { seededRandom } from "../random/seeded.ts";
import type { ChangedTags } from "./changes.ts";
import { ChangesFeed, FEED_ROWS_MAX, FEED_TAGS_MAX, FEED_WAITERS_MAX, feedPositionPattern } from "./changes-feed.ts";

const clock = () => new SimulatedClock(0);

function row(sequence: number, tags: string[], workspaceId: string | null = "ws_1"): ChangedTags {
  return { sequence, tags, workspaceId, nonce: `nonce${sequence}` };
}

/** A feed that has started at number 0, and has read these rows. */
function openFeed(...rows: ChangedTags[]): ChangesFeed {
  const feed = new ChangesFeed(clock(), "one");
  feed.restart({ server: "primary", final: 0 });
  for (const one of rows) feed.add(one);
  feed.reach({ final: rows.at(-1)?.sequence ?? 0 });
  return feed;
}

describe("ChangesFeed", () => {
  it("brings the tags of a workspace, and those that may concern any", () => {
    const feed = openFeed();
    const start = feed.present();
    assert.match(start, feedPositionPattern);
    for (const one of [row(1, ["a"]), row(2, ["b"], "ws_2"), row(3, ["c", "d"], null)]) feed.add(one);
    feed.reach({ final: 3 });
    assert.equal(feed.compare(start), "held");
    const { tags, hasMore, position } = feed.take(start, "ws_1");
    assert.deepEqual([tags, hasMore], [["a", "c", "d"], false]);
    assert.deepEqual(feed.take(position, "ws_1").tags, []);
    assert.deepEqual(feed.take(start, "ws_3").tags, ["c", "d"]);
  });

  it("brings a row below which a transaction is open, and brings it once", () => {
    const feed = openFeed(row(1, ["a"]));
    const start = feed.present();
    // Number 2 is drawn and not committed.
    feed.add(row(3, ["late"]));
    feed.reach({ final: 1 });
    const first = feed.take(start, "ws_1");
    assert.deepEqual(first.tags, ["late"]);
    feed.add(row(2, ["early"]));
    feed.add(row(3, ["late"]));
    feed.reach({ final: 3 });
    assert.deepEqual(feed.take(first.position, "ws_1").tags, ["early"]);
  });

  it("splits long answers within a row, and another process then begins before it", () => {
    const names = Array.from({ length: FEED_TAGS_MAX + 500 }, (_, i) => `tag_${i}`);
    const [one, other] = [openFeed(), new ChangesFeed(clock(), "two")];
    other.restart({ server: "primary", final: 0 });
    const start = one.present();
    for (const feed of [one, other]) {
      feed.add(row(1, names));
      feed.reach({ final: 1 });
    }
    const first = one.take(start, "ws_1");
    assert.deepEqual([first.tags.length, first.hasMore], [FEED_TAGS_MAX, true]);
    const rest = one.take(first.position, "ws_1");
    assert.deepEqual([...first.tags, ...rest.tags], names);
    assert.equal(rest.hasMore, false);
    assert.equal(other.compare(first.position), "held");
    assert.deepEqual(other.take(first.position, "ws_1").tags, names.slice(0, FEED_TAGS_MAX));
  });

  it("asks for a read when a position is ahead of it, and believes none of another table", () => {
    const [one, other] = [openFeed(row(1, ["a"])), new ChangesFeed(clock(), "two")];
    other.restart({ server: "primary", final: 0 });
    one.add(row(2, ["b"]));
    one.reach({ final: 2 });
    const ahead = one.present();
    assert.equal(other.compare(ahead), "ahead");
    other.add(row(1, ["a"]));
    other.add(row(2, ["b"]));
    // Its own final number may lag behind, because a transaction has started since.
    other.reach({ final: 1 });
    assert.equal(other.compare(ahead, true), "held");

    const replaced = new ChangesFeed(clock(), "three");
    replaced.restart({ server: "primary", final: 0 });
    replaced.add(row(1, ["a"]));
    replaced.reach({ final: 1 });
    assert.equal(replaced.compare(ahead, true), "lost", "the newest row is missing");
    replaced.add({ ...row(2, ["other"]), nonce: "different" });
    replaced.reach({ final: 2 });
    assert.equal(replaced.compare(ahead), "lost", "another row has its number");
    for (const server of ["promoted", ""]) {
      const elsewhere = new ChangesFeed(clock(), "four");
      elsewhere.restart({ server, final: 2 });
      assert.equal(elsewhere.compare(ahead, true), "lost");
    }
  });

  it("loses every position when it starts again", () => {
    const feed = openFeed(row(1, ["a"]));
    const before = feed.present();
    feed.restart({ server: "primary", final: 1 });
    assert.equal(feed.compare(before), "lost");
    assert.equal(feed.compare(feed.present()), "held");
    for (const wrong of ["", "x", `${before}0`, "a.b.c.d.e.f", before.replace(/\d+$/, "999")]) {
      assert.equal(feed.compare(wrong), "lost", wrong);
    }
  });

  it("knows positions of before its start, if it is filled", () => {
    const rows = [row(1, ["a"]), row(2, ["b"]), row(3, ["c"])];
    const before = openFeed(row(1, ["a"])).present();
    const feed = new ChangesFeed(clock(), "restarted");
    feed.restart({ server: "primary", final: 2 });
    assert.equal(feed.compare(before), "lost");
    feed.fill({ server: "another", rows: rows.toReversed() });
    assert.equal(feed.held, 0);
    feed.fill({ server: "primary", rows: rows.toReversed() });
    assert.equal(feed.compare(before), "held");
    assert.deepEqual(feed.take(before, "ws_1").tags, ["b"], "the third is read by the follower");
    feed.add(row(3, ["c"]));
    feed.reach({ final: 3 });
    assert.deepEqual(feed.take(before, "ws_1").tags, ["b", "c"]);
  });

  it("keeps a bounded number of rows, and says what it has lost", () => {
    const feed = openFeed();
    const start = feed.present();
    const other = new ChangesFeed(clock(), "two");
    other.restart({ server: "primary", final: 0 });
    const foreign = other.present();
    for (let i = 1; i <= FEED_ROWS_MAX; i++) feed.add(row(i, [`tag_${i}`]));
    feed.reach({ final: FEED_ROWS_MAX });
    assert.deepEqual([feed.compare(start), feed.compare(foreign)], ["held", "held"]);
    feed.add(row(FEED_ROWS_MAX + 1, ["last"]));
    feed.reach({ final: FEED_ROWS_MAX + 1 });
    assert.deepEqual([feed.compare(start), feed.compare(foreign)], ["lost", "lost"]);
    assert(feed.held <= FEED_ROWS_MAX && feed.held > FEED_ROWS_MAX / 2);
    const long = Array.from({ length: 1_000 }, (_, i) => `${"x".repeat(200)}${i}`);
    for (let i = 2; i <= 200; i++) feed.add(row(FEED_ROWS_MAX + i, long));
    assert(feed.held < 200, "by the characters of their tags too");
  });

  it("wakes those who wait for what has arrived, and bounds them", async () => {
    const time = clock();
    const feed = new ChangesFeed(time, "one");
    feed.restart({ server: "", final: 0 });
    feed.reach({ final: 0 });
    const woken: string[] = [];
    const wait = (workspaceId: string) => feed.wait(workspaceId, 300).then(() => void woken.push(workspaceId));
    const all = [wait("ws_1"), wait("ws_2"), wait("ws_3")];
    feed.add(row(1, ["a"]));
    feed.reach({ final: 1 });
    await all[0];
    assert.deepEqual(woken, ["ws_1"]);
    feed.add(row(2, ["b"], null));
    feed.reach({ final: 2 });
    await Promise.all(all);
    const last = wait("ws_1");
    time.advance(299);
    await Promise.resolve();
    assert.equal(feed.waiting, 1);
    time.advance(1);
    await last;
    assert.equal(feed.waiting, 0);

    const waiting = Array.from({ length: FEED_WAITERS_MAX.perWorkspace }, () => feed.wait("ws_1", 300));
    await feed.wait("ws_1", 300);
    assert.equal(feed.waiting, FEED_WAITERS_MAX.perWorkspace);
    time.advance(300);
    await Promise.all(waiting);
    assert.equal(feed.waiting, 0);
  });
});

/** A row of the simulated table. `committedAt`: the step; infinite while its transaction is open. */
interface SimulatedRow extends ChangedTags {
  committedAt: number;
}

/** A process that reads the simulated table as decisions/012 says. */
class Process {
  readonly feed: ChangesFeed;
  final = 0;
  readAt = 0;
  /** The numbers that it has read. */
  known = new Set<number>();

  constructor(name: string) {
    this.feed = new ChangesFeed(clock(), name);
  }
}

/**
 * Edges that ask several processes, whose numbers are committed in another order than drawn, and which restart. By seed:
 * every tag of its workspace that was committed before the read behind an answer has reached the edge, or it was told that
 * it lost some; and a process that answers has read all that the edge has.
 */
describe("edges of several processes", () => {
  const SEEDS = 300;
  it(`miss no change in ${SEEDS} schedules`, () => {
    const seen = { answers: 0, lost: 0, ahead: 0, moved: 0, split: 0 };
    for (let seed = 1; seed <= SEEDS; seed++) runSchedule(seed, seen);
    for (const [name, count] of Object.entries(seen)) assert(count > 50, `${name}: ${count}`);
  });
});

function runSchedule(seed: number, seen: Record<"answers" | "lost" | "ahead" | "moved" | "split", number>): void {
  const random = seededRandom(seed);
  const table: SimulatedRow[] = [];
  let step = 1;
  const visible = () => table.filter(({ committedAt }) => committedAt < step);
  /** The number below which everything is committed. */
  const horizon = () => {
    const open = table.find(({ committedAt }) => committedAt >= step);
    return open === undefined ? table.length : open.sequence - 1;
  };
  const read = (process: Process) => {
    const rows = visible().filter(({ sequence }) => sequence > process.final);
    for (const one of rows) process.feed.add(one);
    const newest = Math.max(process.final, ...rows.map(({ sequence }) => sequence));
    process.final = Math.max(process.final, Math.min(horizon(), newest));
    process.readAt = step;
    process.known = new Set(visible().map(({ sequence }) => sequence));
    process.feed.reach({ final: process.final });
  };
  const start = (name: string) => {
    const process = new Process(name);
    const newest = visible().at(-1)?.sequence ?? 0;
    process.final = Math.min(horizon(), newest);
    process.feed.restart({ server: "primary", final: process.final });
    // The oldest rows may be deleted already.
    const kept = visible().slice(-20).reverse();
    if (random.below(4) > 0) process.feed.fill({ server: "primary", rows: kept });
    read(process);
    return process;
  };
  const processes = [start("first"), start("second"), start("third")];
  const edges = ["ws_1", "ws_2"].map((workspaceId) => ({
    workspaceId,
    position: undefined as string | undefined,
    at: 0,
    /** The step up to which everything had arrived. */
    since: 0,
    has: new Set<string>(),
  }));
  for (; step < 250; step++) {
    switch (random.below(8)) {
      case 0:
      case 1: {
        const sequence = table.length + 1;
        const committedAt = random.below(3) > 0 ? step : Number.POSITIVE_INFINITY;
        const workspaceId = [null, "ws_1", "ws_2"][random.below(3)] ?? null;
        const length = random.below(12) === 0 ? FEED_TAGS_MAX + 1 : 1 + random.below(2);
        const tags = Array.from({ length }, (_, i) => `${sequence}/${i}`);
        table.push({ ...row(sequence, tags, workspaceId), committedAt });
        break;
      }
      case 2: {
        const open = table.filter(({ committedAt }) => committedAt === Number.POSITIVE_INFINITY);
        const one = open[random.below(Math.max(1, open.length))];
        if (one) one.committedAt = step;
        break;
      }
      case 3:
        for (const process of processes) if (random.below(2) === 0) read(process);
        break;
      case 4:
        if (random.below(6) === 0) processes[random.below(processes.length)] = start(`restarted ${step}`);
        break;
      default: {
        const edge = edges[random.below(edges.length)];
        const at = random.below(processes.length);
        const process = processes[at];
        if (!edge || !process) break;
        if (edge.at !== at) seen.moved++;
        edge.at = at;
        ask(edge, process);
      }
    }
  }

  function ask(edge: (typeof edges)[number], process: Process): void {
    seen.answers++;
    const { feed } = process;
    let state = edge.position === undefined ? "lost" : feed.compare(edge.position);
    if (state === "ahead") {
      seen.ahead++;
      read(process);
      state = feed.compare(edge.position ?? "", true);
    }
    if (state !== "held" || edge.position === undefined) {
      if (edge.position !== undefined) seen.lost++;
      edge.position = feed.present();
      edge.since = process.readAt;
      edge.has.clear();
      return;
    }
    for (const tag of edge.has) {
      const sequence = Number(tag.split("/")[0]);
      assert(process.known.has(sequence), `seed ${seed}, step ${step}: the process has not read row ${sequence}`);
    }
    const answer = feed.take(edge.position, edge.workspaceId);
    edge.position = answer.position;
    for (const tag of answer.tags) edge.has.add(tag);
    if (answer.hasMore) {
      seen.split++;
      return;
    }
    for (const { sequence, workspaceId, committedAt, tags } of table) {
      if (workspaceId !== null && workspaceId !== edge.workspaceId) {
        assert(!tags.some((tag) => edge.has.has(tag)), `seed ${seed}, step ${step}: a tag of another workspace`);
        continue;
      }
      if (committedAt < edge.since || committedAt >= process.readAt) continue;
      const missing = tags.find((tag) => !edge.has.has(tag));
      assert.equal(missing, undefined, `seed ${seed}, step ${step}: row ${sequence}, committed at ${committedAt}`);
    }
  }
}
