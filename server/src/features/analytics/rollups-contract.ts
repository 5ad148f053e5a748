/** The test suite of all stores of rollups. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { batchText, cellsOf, haveBudgets, IDENTIFIERS_MAX, keyCounts, TAG_SETS_MAX, type UsageLevel } from "./batch.ts";
import type { DecisionAnswer, DecisionRow } from "./decision-log.ts";
import { type Level, levelNames, levels, type Retention } from "./levels.ts";
import { Recorder } from "./recorder.ts";
import type { DecisionQuery, LogBounds, Rollups, StatsQuery, TopEntry, TopQuery } from "./rollups.ts";
import type { MergeOptions } from "./sql/merge-plan.ts";

/** 2026-01-15T12:00:00Z, the beginning of an hour. */
export const NOON = 1_768_478_400_000;

/** The bounds of the log of decisions. */
export const LOG: LogBounds = { life: levels.hour, rowsPerWorkspace: 100 };

export const RETENTION: Retention = { minute: 2 * levels.hour, hour: 2 * levels.day, day: 30 * levels.day };

/** Every write is a segment or a run of several blocks, and a merge takes many steps. */
export const OFTEN_MERGED: MergeOptions = {
  segmentRowsMin: 1,
  mergedRowsMin: { segments: 40, runs: 40 },
  rowsPerStep: 7,
  rowsPerBlock: 3,
};

/** Merges everything, because it is old a day later. */
export async function mergeAll(rollups: Rollups): Promise<void> {
  // The first loop may end a merge that began before the last write.
  for (let i = 0; i < 2; i++) while (await rollups.merge(instantAt(NOON + 30 * levels.day)));
}

interface Verification {
  workspaceId?: string;
  at: number;
  key: { keyId: string; apiId: string; identity: { id: string } | null; budgets?: { budgetId: string }[] } | null;
  code: string;
  tags: string[];
  creditsSpent: number;
}

interface Limited {
  at: number;
  namespaceId: string;
  identifier: string;
  passed: boolean;
  cost: number;
}

/** What the calls of all events have in common. */
const call = { workspaceId: "ws_1", cost: undefined, limit: undefined, address: "203.0.113.7", requestId: "req_1" };
const asked = { cost: 1, limit: 5, duration: 60_000 };

let named = 0;
/** Creates a unique name. */
const fresh = (prefix: string) => `${prefix}_${++named}`;

/** Counts events in recorders, and returns batches of some seconds each. */
function batchesOf(recorderId: string, rounds: readonly { verifications?: Verification[]; limited?: Limited[] }[]) {
  const clock = new SimulatedClock(NOON);
  const recorder = new Recorder(clock);
  return rounds.flatMap(({ verifications = [], limited = [] }, i) => {
    for (const one of verifications) {
      recorder.verification({ ...call, ...one, at: instantAt(one.at), startedAt: 0 });
    }
    for (const one of limited) {
      recorder.ratelimit({ ...call, asked, ...one, at: instantAt(one.at), startedAt: 0 });
    }
    const sealed = recorder.drain();
    if (sealed === undefined) return [];
    const batch = { recorder: recorderId, sequence: i + 1 };
    const { verifications: others, ratelimits } = sealed;
    const keys = sealed.keys.map((columns) => keyCounts(columns));
    // Two of three as earlier releases wrote them.
    const cells = [...cellsOf(keys), ...others];
    if (i % 3 === 1) return [JSON.stringify({ ...batch, verifications: cells, ratelimits })];
    if (i % 3 === 2) return [JSON.stringify({ ...batch, keys: [], others: cells, ratelimits })];
    const parts = { keys: [JSON.stringify(keys)], verifications: [JSON.stringify(others)] };
    const withBudgets = { ...batch, hasBudgets: keys.some(haveBudgets) };
    return [batchText(withBudgets, { ...parts, ratelimits: [JSON.stringify(ratelimits)], decisions: [] })];
  });
}

const question = (more: Partial<StatsQuery> & { subject: string }): StatsQuery => ({
  about: "verifications",
  workspaceId: call.workspaceId,
  level: "minute",
  start: NOON,
  end: NOON + levels.hour,
  tags: [],
  ...more,
});

const topQuestion = (more: Partial<TopQuery> & { workspaceId: string }): TopQuery => ({
  by: "key",
  level: "hour",
  start: NOON,
  end: NOON + levels.hour,
  limit: 10,
  examinedMax: 1_000_000,
  ...more,
});

/** Runs the suite on an empty store from `open`. */
export function describeRollups(name: string, open: () => Promise<Rollups>): void {
  describe(`rollups in ${name}`, () => {
    let rollups: Rollups;
    before(async () => {
      rollups = await open();
    });
    after(() => rollups.close());

    const ask = async (more: Partial<StatsQuery> & { subject: string }) =>
      JSON.parse(`{${await rollups.stats(question(more))}}`);

    it("return empty buckets without events", async () => {
      const { total, valid, outcomes, creditsSpent, series, tags } = await ask({ subject: fresh("key") });
      assert.deepEqual(
        { total, valid, outcomes, creditsSpent, tags },
        {
          total: 0,
          valid: 0,
          outcomes: {},
          creditsSpent: 0,
          tags: [],
        },
      );
      assert.equal(series.length, 60);
      assert.deepEqual(series[59], {
        time: NOON + 59 * levels.minute,
        total: 0,
        valid: 0,
        outcomes: {},
        creditsSpent: 0,
      });
    });

    it("count a repeated batch once", async () => {
      const key = { keyId: fresh("key"), apiId: fresh("api"), identity: null };
      const one = { at: NOON, key, code: "VALID", tags: ["a"], creditsSpent: 2 };
      const [first = "", second = ""] = batchesOf(fresh("recorder"), [
        { verifications: [one] },
        { verifications: [one, { ...one, code: "EXPIRED", creditsSpent: 0 }] },
      ]);
      await rollups.write([first]);
      await rollups.write([first, second]);
      await rollups.write([second]);
      await rollups.write([first]);
      const { total, outcomes, creditsSpent, tags } = await ask({ subject: key.keyId });
      assert.deepEqual(
        { total, outcomes, creditsSpent },
        {
          total: 3,
          outcomes: { EXPIRED: 1, VALID: 2 },
          creditsSpent: 4,
        },
      );
      assert.deepEqual(tags, [{ tag: "a", total: 3, valid: 2 }]);
      assert.equal(
        (await ask({ subject: key.apiId, level: "day", start: NOON - levels.day / 2, end: NOON + levels.day / 2 }))
          .total,
        3,
      );
    });

    it("count concurrent batches of several recorders", async () => {
      const key = { keyId: fresh("key"), apiId: fresh("api"), identity: { id: fresh("id") } };
      const verifications = Array.from({ length: 20 }, () => ({
        at: NOON,
        key,
        code: "VALID",
        tags: [],
        creditsSpent: 1,
      }));
      const writes = Array.from({ length: 8 }, () => rollups.write(batchesOf(fresh("recorder"), [{ verifications }])));
      await Promise.all(writes);
      for (const subject of [key.keyId, key.apiId, key.identity.id]) {
        const { total, creditsSpent } = await ask({ subject });
        assert.deepEqual({ total, creditsSpent }, { total: 160, creditsSpent: 160 });
      }
    });

    it("count a verification for each budget that it spends from", async () => {
      const [team, company] = [{ budgetId: fresh("bud") }, { budgetId: fresh("bud") }];
      const key = { keyId: fresh("key"), apiId: fresh("api"), identity: { id: fresh("id") } };
      const event = { at: NOON, code: "VALID", tags: ["a"], creditsSpent: 5 };
      const inTeam = { ...event, key: { ...key, budgets: [team, company] } };
      await rollups.write(
        batchesOf(fresh("recorder"), [
          { verifications: [inTeam, { ...inTeam, code: "USAGE_EXCEEDED", creditsSpent: 0 }] },
          { verifications: [{ ...event, key: { ...key, budgets: [company] }, creditsSpent: 2 }] },
          { verifications: [{ ...event, key }] },
        ]),
      );
      for (const [subject, total, creditsSpent] of [
        [team.budgetId, 2, 5],
        [company.budgetId, 3, 7],
        [key.keyId, 4, 12],
        [key.identity.id, 4, 12],
      ] as const) {
        const stats = await ask({ subject });
        assert.deepEqual([stats.total, stats.creditsSpent], [total, creditsSpent], subject);
        assert.equal(stats.tags[0].total, total);
      }
    });

    it("accept a tag set of any characters and any length", async () => {
      const key = { keyId: fresh("key"), apiId: fresh("api"), identity: null };
      const odd = ['"', "'", "\\", "\n", "\u{1f511}", "%", "\u0001", " ", "a,b", "["];
      const long = Array.from({ length: 10 }, (_, i) => `${i}${"\u0007".repeat(127)}`);
      const at = NOON;
      await rollups.write(
        batchesOf(fresh("recorder"), [
          {
            verifications: [odd, long].map((tags) => ({ at, key, code: "VALID", tags, creditsSpent: 0 })),
          },
        ]),
      );
      const { tags } = await ask({ subject: key.keyId });
      assert.deepEqual(tags.map(({ tag }: { tag: string }) => tag).sort(), [...odd, ...long].sort());
      for (const tag of [...odd, ...long]) assert.equal((await ask({ subject: key.keyId, tags: [tag] })).total, 1);
    });

    it("equal a count of the events, for any range and any tags", async () => {
      const tag = fc.constantFrom("a", "b", "c", "d\u0000".slice(0, 1));
      const event = fc.record({
        minute: fc.integer({ min: 0, max: 200 }),
        key: fc.constantFrom(0, 1, 2, null),
        code: fc.constantFrom("VALID", "RATE_LIMITED", "NOT_FOUND", "DISABLED"),
        tags: fc.array(tag, { maxLength: 3 }),
        creditsSpent: fc.integer({ min: 0, max: 5 }),
      });
      const asked = fc.record({
        subject: fc.constantFrom("key0", "key1", "api0", "api1", "id0"),
        level: fc.constantFrom<Level>("minute", "hour", "day"),
        from: fc.integer({ min: -3, max: 210 }),
        length: fc.integer({ min: 1, max: 210 }),
        tags: fc.uniqueArray(tag, { maxLength: 2 }),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(event, { maxLength: 30 }), { maxLength: 5 }),
          fc.array(asked, { minLength: 1, maxLength: 5 }),
          async (rounds, questions) => {
            const unique = fresh("unique");
            const keys = [0, 1, 2].map((i) => ({
              keyId: `key${i}_${unique}`,
              apiId: `api${i >> 1}_${unique}`,
              identity: i === 1 ? null : { id: `id0_${unique}` },
            }));
            const events = rounds.map((round) =>
              round.map(({ minute, key, ...rest }) => ({
                ...rest,
                at: NOON + minute * levels.minute,
                key: key === null ? null : keys[key]!,
              })),
            );
            const batches = batchesOf(
              fresh("recorder"),
              events.map((verifications) => ({ verifications })),
            );
            for (const batch of batches) await rollups.write([batch]);
            for (const { subject, level, from, length, tags } of questions) {
              const floor = (time: number) => time - (time % levels[level]);
              const start = floor(NOON + from * levels.minute);
              const end = floor(NOON + (from + length) * levels.minute) + levels[level];
              const name = `${subject}_${unique}`;
              const meant = events
                .flat()
                .filter(
                  ({ at, key, tags: had }) =>
                    at >= start &&
                    at < end &&
                    key !== null &&
                    [key.keyId, key.apiId, key.identity?.id].includes(name) &&
                    tags.every((one) => had.includes(one)),
                );
              const sorted = [...tags].sort();
              const answer = await ask({ subject: name, level, start, end, tags: sorted });
              assert.deepEqual(answer, naive(meant, start, end, level));
              if (tags.length > 0) continue;
              const subjects = [name, `other_${unique}`];
              const buckets = (answer.series as { time: number; total: number; valid: number }[])
                .filter(({ total }) => total > 0)
                .map(({ time, total, valid }) => ({ time, total, valid }));
              assert.deepEqual(
                await rollups.counts({ workspaceId: call.workspaceId, subjects, level, start, end }),
                buckets.length === 0 ? [] : [{ subject: name, series: buckets }],
              );
            }
          },
        ),
        { numRuns: 15 },
      );
    });

    it("limit the tag sets of a bucket, and count the rest as overflow", async () => {
      const key = { keyId: fresh("key"), apiId: fresh("api"), identity: null };
      const verifications = Array.from({ length: TAG_SETS_MAX + 30 }, (_, i) => ({
        at: NOON,
        key,
        code: i % 2 ? "VALID" : "EXPIRED",
        tags: [`request=${i}`],
        creditsSpent: 0,
      }));
      const known = { at: NOON, key, code: "VALID", tags: ["request=0"], creditsSpent: 0 };
      await rollups.write(batchesOf(fresh("recorder"), [{ verifications: verifications.slice(0, 60) }]));
      await rollups.write(batchesOf(fresh("recorder"), [{ verifications: [...verifications.slice(60), known] }]));
      const { total, valid, outcomes, tagsUntold, tags } = await ask({ subject: key.keyId });
      assert.deepEqual(
        { total, valid, outcomes, tagsUntold },
        {
          total: TAG_SETS_MAX + 31,
          valid: TAG_SETS_MAX / 2 + 16,
          outcomes: { EXPIRED: TAG_SETS_MAX / 2 + 15, VALID: TAG_SETS_MAX / 2 + 16 },
          tagsUntold: 30,
        },
      );
      assert.deepEqual(tags[0], { tag: "request=0", total: 2, valid: 1 });
      assert.equal(tags.length, 100);
    });

    it("count the limits of a namespace and of one identifier, and list the most denied identifiers", async () => {
      const namespaceId = fresh("rlns");
      const at = NOON + 61_000;
      const passed = (identifier: string, cost: number) => ({ at, namespaceId, identifier, passed: true, cost });
      const denied = (identifier: string) => ({ at, namespaceId, identifier, passed: false, cost: 0 });
      await rollups.write(
        batchesOf(fresh("recorder"), [
          { limited: [passed("a", 3), passed("b", 1), denied("b"), denied("b"), denied("c")] },
        ]),
      );
      const whole = await ask({ about: "ratelimits", subject: namespaceId, end: NOON + 2 * levels.minute });
      assert.deepEqual(whole, {
        total: 5,
        passed: 2,
        denied: 3,
        cost: 4,
        series: [
          { time: NOON, total: 0, passed: 0, denied: 0, cost: 0 },
          { time: NOON + levels.minute, total: 5, passed: 2, denied: 3, cost: 4 },
        ],
        identifiers: [
          { identifier: "b", denied: 2, total: 3 },
          { identifier: "c", denied: 1, total: 1 },
        ],
      });
      const one = await ask({ about: "ratelimits", subject: namespaceId, identifier: "a" });
      assert.deepEqual([one.total, one.passed, one.cost, one.identifiers], [1, 1, 3, []]);
    });

    it("limit the identifiers of a bucket, and count the rest as overflow", async () => {
      const namespaceId = fresh("rlns");
      const limited = Array.from({ length: IDENTIFIERS_MAX + 5 }, (_, i) => ({
        at: NOON,
        namespaceId,
        identifier: `user_${i}`,
        passed: false,
        cost: 0,
      }));
      await rollups.write(batchesOf(fresh("recorder"), [{ limited }]));
      const { total, denied, identifiersUntold, identifiers } = await ask({
        about: "ratelimits",
        subject: namespaceId,
      });
      assert.deepEqual([total, denied, identifiersUntold], [IDENTIFIERS_MAX + 5, IDENTIFIERS_MAX + 5, 5]);
      assert.equal(identifiers.length, 100);
    });

    it("rank the keys and the identities of a workspace, as a count of the events does", async () => {
      const event = fc.record({
        minute: fc.integer({ min: 0, max: 50 * 60 }),
        workspace: fc.constantFrom(0, 0, 0, 1),
        key: fc.constantFrom(0, 1, 2, 3, 4, null),
        // A key changes its identity.
        identity: fc.constantFrom("a", "b", null),
        code: fc.constantFrom("VALID", "VALID", "RATE_LIMITED", "NOT_FOUND"),
        tags: fc.constantFrom<string[]>([], ["a"], ["b"]),
        creditsSpent: fc.integer({ min: 0, max: 5 }),
      });
      const asked = fc.record({
        by: fc.constantFrom<TopQuery["by"]>("key", "identity"),
        level: fc.constantFrom<UsageLevel>("hour", "day"),
        from: fc.integer({ min: -1, max: 51 }),
        length: fc.integer({ min: 1, max: 51 }),
        api: fc.constantFrom(undefined, 0, 1),
        limit: fc.integer({ min: 1, max: 5 }),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(event, { maxLength: 40 }), { maxLength: 4 }),
          fc.array(asked, { minLength: 1, maxLength: 5 }),
          async (rounds, questions) => {
            const unique = fresh("unique");
            const events = rounds.map((round) =>
              round.map(({ minute, workspace, key, identity, ...rest }) => ({
                ...rest,
                workspaceId: `ws${workspace}_${unique}`,
                at: NOON + minute * levels.minute,
                key:
                  key === null
                    ? null
                    : {
                        keyId: `key${key}_${workspace}_${unique}`,
                        apiId: `api${key % 2}_${workspace}_${unique}`,
                        identity: identity === null ? null : { id: `id${identity}_${workspace}_${unique}` },
                      },
              })),
            );
            const batches = batchesOf(
              fresh("recorder"),
              events.map((verifications) => ({ verifications })),
            );
            // Each batch twice: the second time it is a repetition.
            for (const batch of batches) for (let n = 0; n < 2; n++) await rollups.write([batch]);
            for (const { by, level, from, length, api, limit } of questions) {
              const floor = (time: number) => time - (time % levels[level]);
              const start = floor(NOON + from * levels.hour);
              const end = floor(NOON + (from + length) * levels.hour) + levels[level];
              const workspaceId = `ws0_${unique}`;
              const apiId = api === undefined ? undefined : `api${api}_0_${unique}`;
              const meant = events
                .flat()
                .filter(
                  (one) =>
                    one.workspaceId === workspaceId &&
                    one.at >= start &&
                    one.at < end &&
                    (apiId === undefined || one.key?.apiId === apiId),
                );
              const answer = await rollups.top(topQuestion({ by, workspaceId, apiId, level, start, end, limit }));
              assert.deepEqual(answer, { entries: naiveTop(meant, by).slice(0, limit) });
            }
          },
        ),
        { numRuns: 15 },
      );
    });

    it("examine a limited number of rows for a ranking, the newest buckets first", async () => {
      const workspaceId = fresh("ws");
      const at = (hour: number, count: number) =>
        Array.from({ length: count }, (_, i) => ({
          workspaceId,
          at: NOON + hour * levels.hour,
          key: { keyId: `key_${i}_${workspaceId}`, apiId: "api", identity: null },
          code: "VALID",
          tags: [],
          creditsSpent: 0,
        }));
      const busy = { ...at(0, 1)[0]!, key: { keyId: `busy_${workspaceId}`, apiId: "api", identity: null } };
      await rollups.write(
        batchesOf(fresh("recorder"), [
          { verifications: [busy, busy, busy, ...at(0, 20), ...at(1, 20), ...at(1, 1), ...at(2, 20)] },
        ]),
      );
      const ask = (examinedMax: number) =>
        rollups.top(topQuestion({ workspaceId, end: NOON + 3 * levels.hour, limit: 1, examinedMax }));
      const all = await ask(62);
      assert.deepEqual([all.entries[0]?.total, all.incompleteBefore], [4, undefined]);
      const some = await ask(40);
      assert.deepEqual([some.entries[0]?.total, some.incompleteBefore], [3, NOON + 2 * levels.hour]);
      assert.equal((await ask(41)).incompleteBefore, NOON + levels.hour);
      assert.equal((await ask(10)).incompleteBefore, NOON + 3 * levels.hour);
    });

    it("delete the buckets beyond the retention of their level, and no others", async () => {
      const key = { keyId: fresh("key"), apiId: fresh("api"), identity: null };
      const verifications = [0, 1, 59, 60, 179].map((minute) => ({
        at: NOON + minute * levels.minute,
        key,
        code: "VALID",
        tags: ["a"],
        creditsSpent: 0,
      }));
      await rollups.write(batchesOf(fresh("recorder"), [{ verifications }]));
      const now = instantAt(NOON + 3 * levels.hour);
      while ((await rollups.prune(now)).more);
      const end = NOON + 3 * levels.hour;
      const totals = await Promise.all(
        levelNames.map(async (level) => {
          const start = NOON - (NOON % levels[level]);
          const whole = Math.max(end, start + levels[level]);
          return (await ask({ subject: key.keyId, level, start, end: whole })).total;
        }),
      );
      assert.deepEqual(totals, [2, 5, 5]);
    });

    it("delete usage beyond the retention of its level, and no other", async () => {
      const workspaceId = fresh("ws");
      const key = { keyId: fresh("key"), apiId: fresh("api"), identity: null };
      const verifications = [0, 1, 26, 50].map((hour) => ({
        workspaceId,
        at: NOON + hour * levels.hour,
        key,
        code: "VALID",
        tags: [],
        creditsSpent: 0,
      }));
      await rollups.write(batchesOf(fresh("recorder"), [{ verifications }]));
      const now = instantAt(NOON + 50 * levels.hour);
      while ((await rollups.prune(now)).more);
      const start = NOON - (NOON % levels.day);
      const end = start + 4 * levels.day;
      const count = async (level: UsageLevel) =>
        (await rollups.top(topQuestion({ workspaceId, level, start, end }))).entries[0]?.total;
      // Hours are kept for two days, the oldest from 14:00 on.
      assert.deepEqual([await count("hour"), await count("day")], [2, 4]);
    });

    it("find decisions of the log by each of their members, the newest first, page by page", async () => {
      const [workspaceId, other] = [fresh("ws"), fresh("ws")];
      const rows = Array.from({ length: 40 }, (_, i) =>
        i % 4 === 3
          ? logged(i, { workspaceId, namespaceId: `rlns_${i % 8}`, code: "DENIED" })
          : logged(i, {
              workspaceId,
              keyId: `key_${i % 3}`,
              apiId: `api_${i % 2}`,
              identityId: i % 5 ? `id_${i % 5}` : "",
              code: i % 6 ? "EXPIRED" : "VALID",
            }),
      );
      const batch = { recorder: fresh("rec"), verifications: [], ratelimits: [] };
      await rollups.write([
        JSON.stringify({ ...batch, sequence: 1, decisions: rows.slice(0, 25) }),
        JSON.stringify({ ...batch, sequence: 2, decisions: [...rows.slice(25), logged(7, { workspaceId: other })] }),
      ]);
      // A batch that is sent again is in the log once.
      await rollups.write([JSON.stringify({ ...batch, sequence: 2, decisions: rows.slice(25) })]);
      const all = (query: Omit<DecisionQuery, "workspaceId" | "limit">) => findAll({ workspaceId, ...query }, 7);
      const expected = (wanted: (row: DecisionRow) => boolean) =>
        rows
          .filter(wanted)
          .map(([, , , , , , , requestId]) => requestId)
          .reverse();
      const check = async (
        query: Omit<DecisionQuery, "workspaceId" | "limit">,
        wanted: (row: DecisionRow) => boolean,
      ) => {
        const found = (await all(query)).map(({ requestId }) => requestId);
        assert.deepEqual(found, expected(wanted));
        assert(found.length > 0);
      };
      await check({}, () => true);
      await check({ keyId: "key_1" }, (row) => row[3] === "key_1");
      await check({ apiId: "api_1" }, (row) => row[4] === "api_1");
      await check({ identityId: "id_2" }, (row) => row[5] === "id_2");
      await check({ namespaceId: "rlns_3" }, (row) => row[6] === "rlns_3");
      await check({ requestId: "req_9" }, (row) => row[7] === "req_9");
      await check({ refused: true }, (row) => row[2] !== "VALID");
      await check({ codes: ["VALID", "DENIED"], keyId: "key_0" }, (row) => row[2] === "VALID" && row[3] === "key_0");
      await check({ start: NOON + 5_000, end: NOON + 9_000 }, ([at]) => at >= NOON + 5_000 && at < NOON + 9_000);
      await check({ readable: { apiIds: ["api_1"], namespaceIds: [] } }, (row) => row[4] === "api_1");
      await check({ readable: { apiIds: undefined, namespaceIds: [] } }, (row) => row[6] === "");
      await check({ readable: { apiIds: [], namespaceIds: undefined } }, (row) => row[6] !== "");
      assert.deepEqual(await all({ readable: { apiIds: [], namespaceIds: [] } }), []);
      assert.equal((await findAll({ workspaceId: other }, 3)).length, 1);
    });

    it("keep the newest decisions of each workspace, up to the bounds of the log", async () => {
      const [full, old] = [fresh("ws"), fresh("ws")];
      const decisions = [
        ...Array.from({ length: 150 }, (_, i) => logged(i, { workspaceId: full })),
        logged(0, { workspaceId: old }),
        logged(3_599, { workspaceId: old }),
      ];
      const batch = { recorder: fresh("rec"), sequence: 1, verifications: [], ratelimits: [] };
      await rollups.write([JSON.stringify({ ...batch, decisions })]);
      const prune = async (at: number) => {
        while ((await rollups.prune(instantAt(at))).more);
      };
      await prune(NOON + 3_600_000);
      const kept = await findAll({ workspaceId: full }, 40);
      assert.deepEqual([kept.length, kept[0]?.requestId, kept.at(-1)?.requestId], [100, "req_149", "req_50"]);
      assert.equal((await findAll({ workspaceId: old }, 40)).length, 2);
      // Whole hours, where a deletion is expensive.
      await prune(NOON + 3_600_000 + 3_599_000);
      assert((await findAll({ workspaceId: old }, 40)).some(({ requestId }) => requestId === "req_3599"));
      await prune(NOON + 2 * 3_600_000);
      assert.deepEqual(await findAll({ workspaceId: old }, 40), []);
      assert.deepEqual(await findAll({ workspaceId: full }, 40), []);
    });

    /** The entries of all pages. */
    async function findAll(query: Omit<DecisionQuery, "limit">, limit: number): Promise<DecisionAnswer[]> {
      const entries: DecisionAnswer[] = [];
      for (let from: DecisionQuery["from"]; ; ) {
        const found = await rollups.decisions({ ...query, from, limit: limit + 1 });
        entries.push(...found.slice(0, limit).map(({ answer }) => JSON.parse(answer) as DecisionAnswer));
        from = found[limit];
        if (from === undefined) return entries;
      }
    }
  });
}

/** The expected ranking, by counting events one by one. */
function naiveTop(events: readonly Verification[], by: TopQuery["by"]): TopEntry[] {
  const groups = new Map<string, Verification[]>();
  for (const event of events) {
    const id = by === "key" ? event.key?.keyId : event.key?.identity?.id;
    if (id !== undefined) groups.set(id, [...(groups.get(id) ?? []), event]);
  }
  const entries = [...groups].map(([id, some]) => {
    const { total, valid, outcomes, creditsSpent } = naive(some, 0, 0, "hour");
    const sorted = Object.fromEntries(Object.entries(outcomes).sort(([a], [b]) => (a < b ? -1 : 1)));
    return { id, total, valid, outcomes: sorted, creditsSpent };
  });
  return entries.sort((a, b) => b.total - a.total || (a.id < b.id ? -1 : 1));
}

/** The expected answer, by counting events one by one. */
function naive(events: readonly Verification[], start: number, end: number, level: Level) {
  const counts = (some: readonly Verification[]) => {
    const outcomes: Record<string, number> = {};
    for (const { code } of some) outcomes[code] = (outcomes[code] ?? 0) + 1;
    return {
      total: some.length,
      valid: outcomes.VALID ?? 0,
      outcomes,
      creditsSpent: some.reduce((sum, { creditsSpent }) => sum + creditsSpent, 0),
    };
  };
  const series = [];
  for (let time = start; time < end; time += levels[level]) {
    series.push({ time, ...counts(events.filter(({ at }) => at >= time && at < time + levels[level])) });
  }
  const names = [...new Set(events.flatMap(({ tags }) => tags))].sort();
  const tags = names.map((tag) => {
    const { total, valid } = counts(events.filter((event) => event.tags.includes(tag)));
    return { tag, total, valid };
  });
  return { ...counts(events), series, tags: tags.sort((a, b) => b.total - a.total) };
}

interface LoggedIds {
  workspaceId: string;
  code: string;
  keyId: string;
  apiId: string;
  identityId: string;
  namespaceId: string;
}

/** A row of the log of decisions, this many seconds after noon. */
function logged(second: number, ids: Partial<LoggedIds>): DecisionRow {
  const { workspaceId = "ws_1", code = "EXPIRED", keyId = "", apiId = "", identityId = "", namespaceId = "" } = ids;
  const [at, requestId] = [NOON + second * 1_000, `req_${second}`];
  const answer: DecisionAnswer = { at, kind: "verification", code, requestId, latencyUs: 5, cost: 1 };
  return [at, workspaceId, code, keyId, apiId, identityId, namespaceId, requestId, answer];
}
