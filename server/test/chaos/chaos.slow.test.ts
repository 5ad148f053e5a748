/** A short run of `npm run chaos`, and what its books notice. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seededRandom } from "../../src/random/seeded.ts";
import { type Book, balance, type DatabaseState, type Promises } from "./books.ts";
import { KILL, planFaults } from "./faults.ts";
import { type Answer, Journal, type JournalLimit } from "./journal.ts";
import { type ChaosReport, describeReport, isBalanced, runChaos } from "./run.ts";
import { Timeline } from "./timeline.ts";

describe("a fleet under faults", () => {
  it("keeps its promises", async (t) => {
    const report = await runChaos({
      ...{ seed: 6, lengthMs: 15_000, policy: "closed", workers: 1, freezeMs: 4_000, haste: 4, installs: false },
      onProgress: () => {},
    });
    const text = describeReport(report);
    for (const line of text.split("\n")) t.diagnostic(line);
    assert(isBalanced(report), text);
    // A machine that shares its cores with other tests answers a few hundred calls, a quiet one thousands.
    assert((report.statuses.get("200") ?? 0) > 50, "there was load");
    assert([...report.faults.values()].reduce((all, count) => all + count, 0) >= 6, "there were faults");
  });
});

describe("a schedule of faults", () => {
  const machine = { hasSmallDisks: true, hasMovableClocks: true, hasWorkers: true };
  const options = { lengthMs: 240_000, freezeMs: 40_000, nodes: 3, haste: 1 };

  it("depends on nothing but the seed, and has every fault in four minutes", () => {
    const plan = planFaults(seededRandom(5), options, machine);
    assert.deepEqual(planFaults(seededRandom(5), options, machine), plan);
    assert.notDeepEqual(planFaults(seededRandom(6), options, machine), plan);
    assert(new Set(plan.map(({ name }) => name)).size === 28);
    assert(plan.every(({ at, ms }) => at + ms <= options.lengthMs));
  });

  it("leaves out what the machine and the nodes do not allow", () => {
    const plan = planFaults(seededRandom(5), options, {
      hasSmallDisks: false,
      hasMovableClocks: false,
      hasWorkers: false,
    });
    assert(!plan.some(({ name }) => /disk|clock|thread/.test(name)));
  });
});

describe("the books", () => {
  const promises: Promises = { policy: "closed", nodes: 3, staleMaxMs: 8_000, endedAt: 2e9 };

  /** Books of a run in which everything is right. */
  function openBooks(): { journal: Journal; database: DatabaseState; timeline: Timeline; promises: Promises } {
    const journal = new Journal();
    journal.keys.push({
      ...{ marker: "m", keyId: "key_1", key: "k", name: "a", openNames: [], deletion: "none", history: [] },
    });
    const limit: JournalLimit = {
      ...{ name: "endless", limit: 3, duration: 86_400_000 * 30, mode: "standard", admissions: [], calls: 9 },
    };
    const pool = { keyId: "key_2", key: "k", initial: 10, spent: 4, added: 1, openSpent: 0, openAdded: 0 };
    journal.pools.push({ ...pool, limit: undefined });
    journal.limits.push(limit);
    for (let i = 0; i < 3; i++) limit.admissions.push({ node: 0, cost: 1, sentAt: i, answeredAt: i + 1 });
    const row = { name: "a", marker: undefined, isDeleted: false, remaining: undefined };
    const keys = [
      { ...row, id: "key_1", marker: "m" },
      { ...row, id: "key_2", remaining: 7 },
    ];
    return { journal, database: { keys, audit: new Map() }, timeline: new Timeline(3), promises: { ...promises } };
  }

  /** Records a fault that ended, and when the nodes that it hit were well. */
  function cutOff(timeline: Timeline, node: number | undefined, from: number, to: number, wellAt = to): void {
    timeline.disturbances.push({ what: "cut off", node, from, to });
    for (const hit of node === undefined ? [0, 1, 2] : [node]) timeline.recordWell(hit, wellAt);
  }

  const failure: Answer = {
    ...{
      operation: "keys.verifyKey",
      status: 503,
      node: 0,
      problem: "x",
      data: undefined,
      sentAt: 100,
      answeredAt: 200,
    },
  };

  /** What goes wrong in a run, and the book that must notice it. */
  const wrongs: Record<string, [book: RegExp, (books: ReturnType<typeof openBooks>) => void]> = {
    "a key is gone": [/writes lost/, ({ database }) => database.keys.shift()],
    "a change is gone": [/writes lost/, ({ journal }) => Object.assign(journal.keys[0]!, { name: "b" })],
    "a deletion is gone": [
      /writes lost/,
      ({ journal }) => Object.assign(journal.keys[0]!, { deletion: "acknowledged" }),
    ],
    "a call made two keys": [
      /executed twice/,
      ({ database }) => database.keys.push({ ...database.keys[0]!, id: "key_3" }),
    ],
    "a credit is gone": [/credits lost/, ({ database }) => Object.assign(database.keys[1]!, { remaining: 6 })],
    "a credit came back": [/credits minted/, ({ database }) => Object.assign(database.keys[1]!, { remaining: 8 })],
    "a limit was passed": [/over limits/, ({ journal }) => Object.assign(journal.limits[0]!, { limit: 2 })],
    "a short window was passed": [
      /over limits/,
      ({ journal }) => Object.assign(journal.limits[0]!, { limit: 1, duration: 2_000 }),
    ],
    "a trailing duration of a strict limit was passed": [
      /over limits/,
      ({ journal }) => Object.assign(journal.limits[0]!, { limit: 2, duration: 2_000, mode: "strict" }),
    ],
    "a limit was passed that every node may count alone": [
      /over limits/,
      ({ journal, promises }) => {
        promises.policy = "local";
        Object.assign(journal.limits[0]!, { limit: 2 });
        for (let i = 0; i < 4; i++) journal.limits[0]!.admissions.push({ node: i, cost: 1, sentAt: i, answeredAt: i });
      },
    ],
    "a limit was passed by more than a killed node forgets": [
      /over limits/,
      ({ journal, timeline, promises }) => {
        promises.policy = "local";
        Object.assign(journal.limits[0]!, { limit: 1 });
        timeline.disturbances.push({ what: KILL, node: 0, from: 1_900, to: 3_000 });
        timeline.recordWell(0, 3_000);
        // One of these is older than a second, and one was admitted by another node.
        for (const answeredAt of [100, 1_500]) {
          journal.limits[0]!.admissions.push({ node: 0, cost: 1, sentAt: answeredAt, answeredAt });
        }
        journal.limits[0]!.admissions.push({ node: 1, cost: 1, sentAt: 1_500, answeredAt: 1_500 });
      },
    ],
    "a revoked key was accepted": [
      /revoked keys/,
      ({ journal }) => journal.revoked.push({ keyId: "k", node: 1, revokedAt: 0, sentAt: 1_300, isAccepted: true }),
    ],
    "a cut-off node accepted a revoked key for too long": [
      /revoked keys/,
      ({ journal, timeline }) => {
        cutOff(timeline, 1, 1e9, 2e9);
        const age = promises.staleMaxMs + 1_300;
        journal.revoked.push({ keyId: "k", node: 1, revokedAt: 1e9, sentAt: 1e9 + age, isAccepted: true });
      },
    ],
    "a known key was rejected": [/known keys/, ({ journal }) => journal.denials.push({ ...failure, data: {} })],
    "a node was unavailable without a fault": [/without a fault/, ({ journal }) => journal.failures.push(failure)],
    "there was an unexpected status": [
      /unexpected/,
      ({ journal, timeline }) => {
        cutOff(timeline, undefined, 1e9, 2e9);
        journal.failures.push({ ...failure, status: 500, sentAt: 1e9, answeredAt: 1e9 });
      },
    ],
    "a slow machine does not explain an unexpected status": [
      /unexpected/,
      ({ journal, timeline }) => {
        timeline.recordLag(undefined, 200, 5_000);
        journal.failures.push({ ...failure, status: 500 });
      },
    ],
    "a call got no answer without a fault": [
      /none at all, without a fault/,
      ({ journal }) => journal.failures.push({ ...failure, status: 0, node: undefined }),
    ],
    "a call was rejected as busy without a fault": [
      /409 and 429 without a fault/,
      ({ journal }) => journal.failures.push({ ...failure, status: 409 }),
    ],
    "a node was unavailable during a fault of another": [
      /504, and none at all, without a fault/,
      ({ journal, timeline }) => {
        cutOff(timeline, 1, 0, 1_000);
        journal.failures.push(failure);
      },
    ],
    "a node was unavailable long after a fault": [
      /504, and none at all, without a fault/,
      ({ journal, timeline }) => {
        cutOff(timeline, 0, 0, 1_000);
        journal.failures.push({ ...failure, sentAt: 7_500, answeredAt: 7_600 });
      },
    ],
    "a node was unavailable after it had recovered": [
      /504, and none at all, without a fault/,
      ({ journal, timeline }) => {
        cutOff(timeline, 0, 0, 1_000, 20_000);
        journal.failures.push({ ...failure, sentAt: 22_500, answeredAt: 22_600 });
      },
    ],
    "a node did not recover in time": [
      /not well 30 s after a repair/,
      ({ timeline }) => {
        cutOff(timeline, 0, 0, 1_000, 41_000);
        // The time of another fault does not count.
        cutOff(timeline, 0, 5_000, 14_000, 41_000);
      },
    ],
  };

  it("add up if everything is right", () => {
    const { journal, database, timeline } = openBooks();
    assert.deepEqual(
      balance(journal, database, timeline, promises).filter(({ wrong }) => wrong > 0),
      [],
    );
  });

  for (const [what, [book, spoil]] of Object.entries(wrongs)) {
    it(`notice that ${what}`, () => {
      const books = openBooks();
      spoil(books);
      const wrong = balance(books.journal, books.database, books.timeline, books.promises).filter(
        ({ wrong }) => wrong > 0,
      );
      assert.equal(wrong.length, 1, JSON.stringify(wrong));
      assert.match(wrong[0]!.title, book);
      assert.equal(wrong[0]!.findings.length, 1);
    });
  }

  it("excuse what the design allows during a fault, and until the node is well again", () => {
    const { journal, database, timeline, promises } = openBooks();
    cutOff(timeline, 0, 0, 500, 21_000);
    journal.failures.push({ ...failure, sentAt: 1_000, answeredAt: 1_100 });
    journal.failures.push({ ...failure, sentAt: 20_000, answeredAt: 20_100 });
    journal.revoked.push({ keyId: "k", node: 0, revokedAt: 0, sentAt: 5_000, isAccepted: true });
    Object.assign(journal.pools[0]!, { openSpent: 2 });
    Object.assign(database.keys[1]!, { remaining: 5 });
    promises.policy = "local";
    timeline.disturbances.push({ what: KILL, node: 1, from: 1_900, to: 3_000 });
    timeline.recordWell(1, 3_000);
    const [limit] = journal.limits;
    for (let i = 0; i < 8; i++) limit!.admissions.push({ node: 1, cost: 1, sentAt: 1_500, answeredAt: 1_600 });
    assert.deepEqual(
      balance(journal, database, timeline, promises).filter(({ wrong }) => wrong > 0),
      [],
    );
  });

  it("say what they did not count because the machine was too slow", () => {
    const { journal, database, timeline } = openBooks();
    timeline.recordLag(undefined, 200, 5_000);
    journal.failures.push(failure);
    const books = balance(journal, database, timeline, promises);
    assert(books.every(({ wrong }) => wrong === 0));
    assert.equal(
      books.reduce((all, { excused = 0 }) => all + excused, 0),
      1,
    );
  });

  it("make a report that is clean only if nothing is wrong", () => {
    const book = { title: "credits lost", checked: 3, wrong: 0, findings: [] };
    const report = (books: Book[]): ChaosReport => ({
      options: {
        seed: 1,
        lengthMs: 0,
        policy: "closed",
        workers: 1,
        freezeMs: 0,
        haste: 1,
        installs: false,
        onProgress: () => {},
      },
      ...{ faults: new Map(), missing: [], statuses: new Map(), lengthMs: 1_000, worstLagMs: 0, logs: [] },
      books,
    });
    assert.equal(isBalanced(report([book])), true);
    assert.match(describeReport(report([book])), /The books add up\.$/);
    const wrong = { ...book, wrong: 2, findings: ["key_1 has 3, and the calls leave 5"] };
    assert.equal(isBalanced(report([book, wrong])), false);
    assert.match(describeReport(report([book, wrong])), /key_1 has 3.*The books do not add up\.$/s);
  });
});
