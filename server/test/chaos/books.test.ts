/** What the books of `npm run chaos` notice, its schedule, and its planted faults. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { makeFolder, Program } from "../process.ts";
import { balance, type DatabaseState, type Promises, type Timelines } from "./books.ts";
import { type Book, FLOOR } from "./count.ts";
import { EDGE_KILL, KILL, planFaults } from "./faults.ts";
import { type Answer, Journal, type JournalLimit } from "./journal.ts";
import { plants } from "./plants.ts";
import { type ChaosReport, describeReport, verdictOf } from "./run.ts";
import { Timeline } from "./timeline.ts";

describe("a schedule of faults", () => {
  const machine = { hasSmallDisks: true, hasMovableClocks: true, hasWorkers: true };
  const options = { lengthMs: 240_000, freezeMs: 40_000, nodes: 3, edges: 3, haste: 1 };

  it("depends on nothing but the seed, and has every fault in four minutes", () => {
    const plan = planFaults(seededRandom(5), options, machine);
    assert.deepEqual(planFaults(seededRandom(5), options, machine), plan);
    assert.notDeepEqual(planFaults(seededRandom(6), options, machine), plan);
    assert(new Set(plan.map(({ name }) => name)).size === 40);
    assert(plan.every(({ at, ms }) => at + ms <= options.lengthMs));
  });

  it("has the same faults of nodes without edges", () => {
    const ofNodes = planFaults(seededRandom(5), options, machine).filter(({ edge }) => edge === undefined);
    assert.deepEqual(planFaults(seededRandom(5), { ...options, edges: 0 }, machine), ofNodes);
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
  const promises: Promises = { policy: "closed", nodes: 3, edges: 3, staleMaxMs: 8_000, endedAt: 2e9 };

  /** Books of a run in which everything is right. */
  function openBooks(): {
    journal: Journal;
    database: DatabaseState;
    /** Of the nodes. */
    timeline: Timeline;
    timelines: Timelines;
    promises: Promises;
  } {
    const journal = new Journal();
    journal.keys.push({
      marker: "m",
      keyId: "key_1",
      key: "k",
      name: "a",
      openNames: [],
      deletion: "none",
      changes: (["created", "meta", "name"] as const).map((kind) => ({
        kind,
        isAcknowledged: true,
        attempts: 1,
        description: "",
        ...(kind === "name" && { name: "a" }),
      })),
    });
    journal.edges.counted.push({ keyId: "key_4", key: "k", edge: 1, answeredAt: [1_000, 5_000, 9_000], open: 1 });
    const limit: JournalLimit = {
      name: "endless",
      limit: 3,
      duration: 86_400_000 * 30,
      mode: "standard",
      admissions: [],
      calls: 9,
      demand: new Map([[9, 5]]),
    };
    const balance = { initial: 10, spent: 4, added: 1, openSpent: 0, openAdded: 0, openCalls: 0, openAdditions: 0 };
    const moves = [
      { before: 8, after: 7 },
      { before: 10, after: 11 },
      { before: 11, after: 8 },
    ];
    const spent = { ...balance, calls: 3, additions: 1 };
    journal.pools.push({ ...spent, id: "key_2", key: "k", moves, limit: undefined });
    const inOrder = [10, 11, 8].map((before, i) => ({ before, after: [11, 8, 7][i]! }));
    journal.edges.pools.push({ ...spent, id: "key_3", key: "k", moves: inOrder, limit: undefined });
    journal.budgets.push({ ...spent, id: "bud_1", moves: [...moves], isDenying: true, refused: 1 });
    journal.followed.push(...EVENTS.map(({ id }) => id));
    journal.limits.push(limit);
    for (let i = 0; i < 3; i++) limit.admissions.push(admission(0, i, i + 1));
    const row = { name: "a", marker: undefined, isDeleted: false, remaining: undefined };
    const keys = [
      { ...row, id: "key_1", marker: "m" },
      { ...row, id: "key_2", remaining: 7 },
      { ...row, id: "key_3", remaining: 7 },
    ];
    const budgets = [
      { id: "bud_1", remaining: 7, held: 0, granted: 11, spent: 4, lapsed: 0 },
      { id: "bud_2", remaining: 3, held: 2, granted: 10, spent: 5, lapsed: 0 },
    ];
    const balances = ["bud_2", "slot_1"];
    const slots = [{ id: "slot_1", held: 1 }];
    const hold = { cost: 2, charged: 0, uncovered: 0, balances, lacks: [], isOverdue: false };
    const holds = [
      { ...hold, id: "hold_1", state: "open" },
      { ...hold, id: "hold_2", state: "settled", charged: 3, uncovered: 1, lacks: [{ balanceId: "key", lack: 1 }] },
      { ...hold, id: "hold_3", state: "expired", charged: 1 },
    ];
    journal.holds.budgets.push({ id: "bud_2", isDenying: true, granted: 10 });
    journal.holds.made.push("hold_1", "hold_2", "hold_3");
    journal.holds.ends.push({ holdId: "hold_2", state: "settled", charged: 3 });
    const audited = (kind: string) => ({ kind, name: kind === "name" ? "a" : undefined, text: "" });
    const audit = new Map([
      // In no certain order.
      ["key_1", ["name", "created", "meta"].map(audited)],
      ["key_2", [audited("created"), audited("credits")]],
      ["bud_1", [audited("credits")]],
    ]);
    const events = EVENTS.map((event) => ({ ...event }));
    const verifications = new Map([["key_4", 4]]);
    const timelines = { nodes: new Timeline(3), edges: new Timeline(3) };
    return {
      journal,
      database: { keys, budgets, holds, slots, audit, events, verifications },
      timeline: timelines.nodes,
      timelines,
      promises: { ...promises },
    };
  }

  /** Those of `key_1` and of its neighbours, in their order. */
  const EVENTS = (
    [
      ["key_1", "created"],
      ["key_2", "created"],
      ["key_1", undefined],
      ["key_2", "credits"],
      ["key_1", "meta"],
      ["key_1", "name"],
      ["key_2", undefined],
      ["bud_1", "credits"],
    ] as const
  ).map(([objectId, kind], i) => ({ id: `evt_${i}`, objectId, kind }));

  function admission(node: number, sentAt: number, answeredAt: number, reset = 9) {
    return { node, cost: 1, sentAt, answeredAt, reset };
  }

  /** Records a fault that ended, and when the nodes that it hit were well. */
  function cutOff(timeline: Timeline, node: number | undefined, from: number, to: number, wellAt = to): void {
    timeline.disturbances.push({ what: "cut off", node, from, to });
    for (const hit of node === undefined ? [0, 1, 2] : [node]) timeline.recordWell(hit, wellAt);
  }

  const failure: Answer = {
    operation: "keys.verifyKey",
    status: 503,
    node: 0,
    problem: "x",
    data: undefined,
    sentAt: 100,
    answeredAt: 200,
  };

  /** A change of two fields that was sent twice, once executed in time, and then of one field some times. */
  function executeLate({ journal, database }: ReturnType<typeof openBooks>, times: number): void {
    const kinds = ["meta,name", ...Array<string>(times).fill("meta")];
    journal.keys[0]!.changes.push({ kind: kinds[0]!, isAcknowledged: true, attempts: 2, description: "", name: "a" });
    kinds.forEach((kind, i) => {
      database.events.push({ id: `evt_late_${i}`, objectId: "key_1", kind });
      database.audit.get("key_1")!.push({ kind, name: "a", text: "" });
      journal.followed.push(`evt_late_${i}`);
    });
  }

  /** What goes wrong in a run, and the book that must notice it. */
  const wrongs: Record<string, [book: RegExp, (books: ReturnType<typeof openBooks>) => void]> = {
    "a key is gone": [/writes lost/, ({ database }) => database.keys.shift()],
    "a change is gone": [/writes lost/, ({ database }) => Object.assign(database.keys[0]!, { name: "b" })],
    "a deletion is gone": [
      /writes lost/,
      ({ journal }) => Object.assign(journal.keys[0]!, { deletion: "acknowledged" }),
    ],
    "a call made two keys": [
      /executed twice/,
      ({ database }) => database.keys.push({ ...database.keys[0]!, id: "key_9" }),
    ],
    "an addition was executed twice": [
      /executed twice/,
      ({ journal, database }) => {
        database.audit.get("key_2")!.push({ kind: "credits", name: undefined, text: "" });
        database.events.push({ id: "evt_9", objectId: "key_2", kind: "credits" });
        journal.followed.push("evt_9");
      },
    ],
    "a credit is gone": [/credits lost/, ({ database }) => Object.assign(database.keys[1]!, { remaining: 6 })],
    "a credit came back": [/credits minted/, ({ database }) => Object.assign(database.keys[1]!, { remaining: 8 })],
    "a credit came back, and another was lost": [
      /balances that no call left/,
      ({ journal }) =>
        Object.assign(journal.pools[0]!, {
          moves: [
            { before: 10, after: 9 },
            { before: 10, after: 7 },
          ],
        }),
    ],
    "a balance was found twice": [
      /balances that no call left/,
      ({ journal }) => journal.pools[0]!.moves!.push({ before: 8, after: 7 }),
    ],
    "a credit of a budget is gone": [
      /credits of budgets lost/,
      ({ database }) => Object.assign(database.budgets[0]!, { remaining: 6, lapsed: 1 }),
    ],
    "a credit of a budget came back": [
      /credits of budgets minted/,
      ({ database }) => Object.assign(database.budgets[0]!, { remaining: 8, lapsed: -1 }),
    ],
    "a balance of a budget was found twice": [
      /balances of budgets that no call left/,
      ({ journal }) => journal.budgets[0]!.moves!.push({ before: 8, after: 7 }),
    ],
    "a budget was overspent": [
      /budgets overspent/,
      ({ journal, database }) => {
        Object.assign(journal.budgets[0]!, { spent: 12 });
        Object.assign(database.budgets[0]!, { remaining: -1, spent: 12 });
      },
    ],
    "the books of a budget do not add up": [
      /books of budgets/,
      ({ journal, database }) => {
        Object.assign(journal.budgets[0]!, { openAdded: 1 });
        Object.assign(database.budgets[0]!, { granted: 12 });
      },
    ],
    "a budget has spent what no client was told": [
      /books of budgets/,
      ({ database }) => Object.assign(database.budgets[0]!, { spent: 5, lapsed: -1 }),
    ],
    "an addition to a budget was executed twice": [
      /executed twice/,
      ({ journal, database }) => {
        database.audit.get("bud_1")!.push({ kind: "credits", name: undefined, text: "" });
        database.events.push({ id: "evt_9", objectId: "bud_1", kind: "credits" });
        journal.followed.push("evt_9");
      },
    ],
    "a hold is open after its time": [
      /never given back/,
      ({ database }) => Object.assign(database.holds[0]!, { isOverdue: true }),
    ],
    "a hold is gone": [/ended in another way/, ({ journal }) => journal.holds.made.push("hold_4")],
    "a hold was settled with another amount": [
      /ended in another way/,
      ({ journal }) => journal.holds.ends.push({ holdId: "hold_2", state: "settled", charged: 4 }),
    ],
    "a settled hold was released": [
      /ended in another way/,
      ({ journal }) => journal.holds.ends.push({ holdId: "hold_2", state: "released", charged: 3 }),
    ],
    "a settlement was applied twice": [
      /held credits/,
      ({ database }) => Object.assign(database.budgets[1]!, { spent: 9, remaining: -1 }),
    ],
    "a slot is not given back": [/held credits/, ({ database }) => Object.assign(database.slots[0]!, { held: 2 })],
    "held credits are gone": [
      /held credits/,
      ({ database }) => Object.assign(database.budgets[1]!, { held: 0, spent: 7 }),
    ],
    "a held budget is below 0": [
      /held credits/,
      ({ database }) => {
        Object.assign(database.budgets[1]!, { remaining: -1, spent: 9 });
        Object.assign(database.holds[2]!, { charged: 5 });
      },
    ],
    "a change has no event": [
      /changes without their event/,
      ({ journal, database }) => {
        database.events = database.events.filter(({ id }) => id !== "evt_4");
        journal.followed.splice(4, 1);
      },
    ],
    "a change has no event, and no audit entry": [
      /changes without their event/,
      ({ journal, database }) => {
        database.events = database.events.filter(({ id }) => id !== "evt_4");
        database.audit.get("key_1")!.pop();
        journal.followed.splice(4, 1);
      },
    ],
    "a change has two events": [
      /changes without their event/,
      ({ journal, database }) => {
        database.events.push({ id: "evt_9", objectId: "key_1", kind: "meta" });
        journal.followed.push("evt_9");
      },
    ],
    "a change that was sent once was executed twice": [
      /changes without their event/,
      ({ journal, database }) => {
        database.events.push({ id: "evt_9", objectId: "key_1", kind: "meta" });
        database.audit.get("key_1")!.push({ kind: "meta", name: undefined, text: "" });
        journal.followed.push("evt_9");
      },
    ],
    "more of a change was executed late than it had attempts": [
      /changes without their event/,
      (books) => executeLate(books, 2),
    ],
    "a change of a balance has no event": [
      /changes without their event/,
      ({ journal, database }) => {
        database.events = database.events.filter(({ id }) => id !== "evt_3");
        journal.followed.splice(3, 1);
      },
    ],
    "two events of a key changed places": [
      /events out of order/,
      ({ journal, database }) => {
        const [meta, name] = database.events.splice(4, 2);
        database.events.splice(4, 0, name!, meta!);
        journal.followed.splice(4, 2, "evt_5", "evt_4");
      },
    ],
    "a follower missed an event": [/follower missed/, ({ journal }) => journal.followed.splice(2, 1)],
    "a follower missed the last change": [/follower missed/, ({ journal }) => journal.followed.splice(5)],
    "a follower got an event twice": [/got twice/, ({ journal }) => journal.followed.push("evt_1")],
    "a follower got events in another order": [/another order/, ({ journal }) => journal.followed.reverse()],
    "an acknowledged name was never given": [
      /writes lost/,
      ({ database }) => Object.assign(database.audit.get("key_1")![0]!, { name: "b" }),
    ],
    "a node accepted a key that it had revoked itself": [
      /revoked keys accepted after/,
      ({ journal }) =>
        journal.revoked.push({ keyId: "k", node: 1, revokedAt: 0, isOwn: true, sentAt: 0, isAccepted: true }),
    ],
    "a limit was passed": [/over limits/, ({ journal }) => Object.assign(journal.limits[0]!, { limit: 2 })],
    "a short window was passed, and its trailing duration was not": [
      /over limits/,
      ({ journal }) => Object.assign(journal.limits[0]!, { limit: 2, duration: 2_000 }),
    ],
    "a trailing duration was passed, and no window": [
      /over limits/,
      ({ journal }) => {
        Object.assign(journal.limits[0]!, { limit: 1, duration: 2_000 });
        for (const [i, one] of journal.limits[0]!.admissions.entries()) one.reset = i;
      },
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
        for (let i = 0; i < 4; i++) journal.limits[0]!.admissions.push(admission(i, i, i));
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
          journal.limits[0]!.admissions.push(admission(0, answeredAt, answeredAt));
        }
        journal.limits[0]!.admissions.push(admission(1, 1_500, 1_500));
      },
    ],
    "a revoked key was accepted": [
      /revoked keys accepted after/,
      ({ journal }) =>
        journal.revoked.push({ keyId: "k", node: 1, revokedAt: 0, isOwn: false, sentAt: 1_300, isAccepted: true }),
    ],
    "a cut-off node accepted a revoked key for too long": [
      /revoked keys accepted after/,
      ({ journal, timeline }) => {
        cutOff(timeline, 1, 1e9, 2e9);
        const age = promises.staleMaxMs + 1_300;
        journal.revoked.push({
          keyId: "k",
          node: 1,
          revokedAt: 1e9,
          isOwn: false,
          sentAt: 1e9 + age,
          isAccepted: true,
        });
      },
    ],
    "an edge accepted a revoked key after a second, although it was cut off": [
      /by edges after a second/,
      ({ journal, timelines }) => {
        cutOff(timelines.edges, 1, 0, 5_000);
        journal.edges.revoked.push({ keyId: "k", edge: 1, revokedAt: 0, sentAt: 1_001, isAccepted: true });
      },
    ],
    "a credit was spent twice at an edge": [
      /spent at edges/,
      ({ database }) => Object.assign(database.keys[2]!, { remaining: 6 }),
    ],
    "a credit was spent twice at an edge by a call whose answer was lost": [
      /spent at edges/,
      ({ journal, database }) => {
        Object.assign(journal.edges.pools[0]!, { openCalls: 1, openSpent: 2 });
        Object.assign(database.keys[2]!, { remaining: 3 });
      },
    ],
    "a credit that was spent at an edge came back, and another was spent twice": [
      /spent at edges/,
      ({ journal }) => Object.assign(journal.edges.pools[0]!.moves![1]!, { before: 10 }),
    ],
    "a verification of an edge was counted twice": [
      /of edges counted twice/,
      ({ database }) => Object.assign(database, { verifications: new Map([["key_4", 5]]) }),
    ],
    "a verification of an edge was lost before the last second of the edge": [
      /of edges counted twice/,
      ({ database, timelines }) => {
        Object.assign(database, { verifications: new Map([["key_4", 1]]) });
        timelines.edges.disturbances.push({ what: EDGE_KILL, node: 1, from: 9_900, to: 12_000 });
      },
    ],
    "an edge was unavailable without a fault": [
      /504, and none at all, without a fault/,
      ({ journal }) => journal.failures.push({ ...failure, node: undefined, edge: 1 }),
    ],
    "an edge was unavailable during a fault of another": [
      /504, and none at all, without a fault/,
      ({ journal, timelines }) => {
        cutOff(timelines.edges, 0, 0, 1_000);
        journal.failures.push({ ...failure, node: undefined, edge: 1 });
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
    const { journal, database, timelines } = openBooks();
    assert.deepEqual(
      balance(journal, database, timelines, promises).filter(({ wrong }) => wrong > 0),
      [],
    );
  });

  for (const [what, [book, spoil]] of Object.entries(wrongs)) {
    it(`notice that ${what}`, () => {
      const books = openBooks();
      spoil(books);
      const wrong = balance(books.journal, books.database, books.timelines, books.promises).filter(
        ({ wrong }) => wrong > 0,
      );
      assert.equal(wrong.length, 1, JSON.stringify(wrong));
      assert.match(wrong[0]!.title, book);
      assert(wrong[0]!.findings.length >= 1);
    });
  }

  it("add up if an attempt was executed late, and set back a part of what was changed meanwhile", () => {
    const books = openBooks();
    executeLate(books, 1);
    const { journal, database, timelines } = books;
    assert(balance(journal, database, timelines, books.promises).every(({ wrong }) => wrong === 0));
  });

  it("excuse what the design allows during a fault, and until the node is well again", () => {
    const { journal, database, timeline, timelines, promises } = openBooks();
    cutOff(timeline, 0, 0, 500, 21_000);
    // Of the network between an edge and home.
    cutOff(timelines.edges, 1, 0, 500, 21_000);
    journal.failures.push({ ...failure, node: undefined, edge: 1, sentAt: 20_000, answeredAt: 20_100 });
    journal.edges.revoked.push({ keyId: "k", edge: 1, revokedAt: 0, sentAt: 1_000, isAccepted: true });
    timelines.edges.disturbances.push({ what: EDGE_KILL, node: 1, from: 9_900, to: 12_000 });
    database.verifications = new Map([["key_4", 2]]);
    journal.failures.push({ ...failure, sentAt: 1_000, answeredAt: 1_100 });
    journal.failures.push({ ...failure, sentAt: 20_000, answeredAt: 20_100 });
    journal.revoked.push({ keyId: "k", node: 0, revokedAt: 0, isOwn: false, sentAt: 5_000, isAccepted: true });
    Object.assign(journal.pools[0]!, { openSpent: 2 });
    Object.assign(database.keys[1]!, { remaining: 5 });
    Object.assign(journal.edges.pools[0]!, { openCalls: 1, openSpent: 2 });
    Object.assign(database.keys[2]!, { remaining: 5 });
    promises.policy = "local";
    timeline.disturbances.push({ what: KILL, node: 1, from: 1_900, to: 3_000 });
    timeline.recordWell(1, 3_000);
    const [limit] = journal.limits;
    for (let i = 0; i < 8; i++) limit!.admissions.push(admission(1, 1_500, 1_600));
    assert.deepEqual(
      balance(journal, database, timelines, promises).filter(({ wrong }) => wrong > 0),
      [],
    );
  });

  it("say what they did not count because the machine was too slow", () => {
    const { journal, database, timeline, timelines } = openBooks();
    timeline.recordLag(undefined, 200, 5_000);
    journal.failures.push(failure);
    const books = balance(journal, database, timelines, promises);
    assert(books.every(({ wrong }) => wrong === 0));
    assert.equal(
      books.reduce((all, { excused = 0 }) => all + excused, 0),
      1,
    );
  });

  it("count what could have shown a fault, and nothing else", () => {
    const { journal, database, timeline, timelines } = openBooks();
    journal.limits.push({ ...journal.limits[0]!, name: "untouched", demand: new Map([[9, 3]]) });
    const answer = { keyId: "k", node: 1, revokedAt: 0, isOwn: false, isAccepted: true };
    for (const sentAt of [100, 1_200]) journal.revoked.push({ ...answer, sentAt });
    for (const sentAt of [2_000, 3_000]) journal.revoked.push({ ...answer, sentAt, isAccepted: false });
    journal.recordAnswer({ ...failure, status: 200, answeredAt: 500 });
    const ofEdge = { keyId: "k", edge: 1, revokedAt: 0, isAccepted: false };
    for (const sentAt of [900, 1_001, 1_002]) journal.edges.revoked.push({ ...ofEdge, sentAt });
    const counts = () => new Map(balance(journal, database, timelines, promises).map((book) => [book.title, book]));
    const compared = (title: RegExp) => [...counts()].find(([other]) => title.test(other))![1].compared;
    assert.equal(compared(/writes lost/), 3);
    assert.equal(compared(/executed twice/), 3);
    assert.equal(compared(/credits lost/), 3);
    assert.equal(compared(/credits of budgets lost/), 3);
    assert.equal(compared(/budgets overspent/), 4);
    assert.equal(compared(/books of budgets/), 3);
    assert.equal(compared(/balances that/), 3);
    assert.equal(compared(/without their event/), 5);
    assert.equal(compared(/over limits/), 1);
    assert.equal(compared(/revoked keys accepted after/), 1);
    assert.equal(compared(/by edges after a second/), 1);
    assert.equal(compared(/of edges counted twice/), 3);
    assert.equal(compared(/spent at edges/), 3);
    assert.equal(compared(/504/), 1);
    // Neither a balance with unknown spends nor an answer during a fault shows anything.
    Object.assign(journal.pools[0]!, { openSpent: 1, openCalls: 1 });
    cutOff(timeline, 0, 0, 1_000);
    assert.equal(compared(/credits lost/), 0);
    assert.equal(compared(/504/), 0);
    assert([...counts().values()].every(({ wrong }) => wrong === 0));
  });

  describe("make a report that", () => {
    const book: Book = {
      title: "credits lost",
      compared: FLOOR,
      unit: "spends",
      floor: FLOOR,
      calls: FLOOR,
      wrong: 0,
      findings: [],
    };
    const report = (books: Book[]): ChaosReport => ({
      options: {
        seed: 1,
        lengthMs: 0,
        loadMs: 0,
        policy: "closed",
        nodes: 3,
        edges: 3,
        workers: 1,
        freezeMs: 0,
        haste: 1,
        load: 1,
        installs: false,
        onProgress: () => {},
      },
      faults: new Map(),
      missing: [],
      statuses: new Map(),
      lengthMs: 1_000,
      worstLagMs: 0,
      isPlanted: false,
      logs: [],
      books,
    });

    it("is clean if enough was compared and nothing is wrong", () => {
      assert.equal(verdictOf(report([book])), "right");
      assert.match(describeReport(report([book])), /credits lost +459 +459 +459 +0 {2}spends\n.*The books add up\.$/s);
    });

    it("is not clean if something is wrong", () => {
      const wrong = { ...book, wrong: 2, findings: ["key_1 has 3, and the calls leave 5"] };
      assert.equal(verdictOf(report([book, wrong])), "wrong");
      assert.match(describeReport(report([book, wrong])), /key_1 has 3.*The books do not add up\.$/s);
    });

    it("says so if too little was compared", () => {
      const poor = report([book, { ...book, title: "credits minted", compared: FLOOR - 1 }]);
      assert.equal(verdictOf(poor), "unknown");
      const text = describeReport(poor);
      assert.match(text, /not enough compared: credits minted: 458 of at least 459 spends/);
      assert.doesNotMatch(text, /The books add up/);
    });
  });
});

describe("planted faults", () => {
  it("still fit the modules that they change", async (t) => {
    const files = Object.values(plants).flatMap(({ preload }) => preload ?? []);
    const modules = [
      "engine/src/credits/settlement.ts",
      "engine/src/directory/generations.ts",
      "engine/src/directory/record-cache.ts",
      "engine/src/limits/leases.ts",
      "engine/src/replica/charges.ts",
      "engine/src/replica/keyed-tags.ts",
      "engine/src/replica/source.ts",
      "engine/src/replica/stream.ts",
      "server/src/edge/counts.ts",
      "server/src/platform/redis/charge-script.ts",
    ];
    const directory = makeFolder(t);
    await Promise.all(
      files.map(async (file) => {
        const imports = modules.map(
          (path) => `await import(${JSON.stringify(new URL(`../../../${path}`, import.meta.url))});`,
        );
        const args = ["--import", file, "--input-type=module", "--eval", `${imports.join("")}console.log("loaded")`];
        const program = new Program(args, { directory });
        await program.ended;
        assert.equal(program.stdout, "loaded\n", program.stderr);
      }),
    );
  });

  it("each have a book that notices them, and change a module or the database", () => {
    const { journal, database, timelines } = {
      journal: new Journal(),
      database: { keys: [], budgets: [], holds: [], slots: [], audit: new Map(), events: [], verifications: new Map() },
      timelines: { nodes: new Timeline(3), edges: new Timeline(3) },
    };
    const promises: Promises = { policy: "closed", nodes: 3, edges: 3, staleMaxMs: 8_000, endedAt: 0 };
    const titles = balance(journal, database, timelines, promises).map(({ title }) => title);
    for (const { book, preload, statements } of Object.values(plants)) {
      assert(
        titles.some((title) => book.test(title)),
        String(book),
      );
      assert((preload === undefined) !== (statements === undefined));
    }
  });
});
