import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { DecisionLog, type DecisionRow, rowsPerMinute } from "./decision-log.ts";
import { levels } from "./levels.ts";
import { Recorder } from "./recorder.ts";

const NOON = 1_768_478_400_000;
const PER_MINUTE = 8;

interface Call {
  workspaceId: string;
  keyId: string | null;
  code: string;
  tags?: string[];
  requestId?: string;
  address?: string;
}

const event = ({ workspaceId, keyId, code, tags, requestId = "req_1", address = "203.0.113.7" }: Call) => ({
  at: instantAt(NOON),
  startedAt: 0,
  workspaceId,
  key: keyId === null ? null : { keyId, apiId: "api_1", identity: { id: "id_1" } },
  code,
  tags,
  creditsSpent: 0,
  cost: undefined,
  limit: undefined,
  address,
  requestId,
});

const limited = (more: object = {}) => ({
  at: instantAt(NOON),
  startedAt: 0,
  workspaceId: "ws_1",
  namespaceId: "rlns_1",
  identifier: "user_1",
  passed: false,
  cost: 0,
  asked: { cost: 2, limit: 5, duration: 60_000 },
  address: "2001:db8:1:2::3",
  requestId: "req_2",
  ...more,
});

const open = () => {
  const clock = new SimulatedClock(NOON);
  const recorder = new Recorder(clock, undefined, PER_MINUTE);
  const rows: DecisionRow[] = [];
  return {
    clock,
    verify: (call: Call) => recorder.verification(event(call)),
    limit: (more?: object) => recorder.ratelimit(limited(more)),
    pass(ms: number) {
      clock.advance(ms);
      rows.push(...(recorder.drain()?.decisions ?? []));
    },
    rows,
  };
};

const sum = (rows: readonly DecisionRow[]) =>
  rows.reduce(
    (total, [, , , , , , , , { leftOut = 0, leftOutOfOthers = 0 }]) => total + 1 + leftOut + leftOutOfOthers,
    0,
  );

describe("the log of decisions", () => {
  it("says what happened, with no full address", () => {
    const { verify, limit, pass, rows } = open();
    verify({ workspaceId: "ws_1", keyId: "key_1", code: "EXPIRED", tags: ["a"] });
    limit({ identifier: "198.51.100.23" });
    pass(1_000);
    assert.deepEqual(
      rows.map((row) => row[8]),
      [
        {
          at: NOON,
          kind: "verification",
          code: "EXPIRED",
          requestId: "req_1",
          latencyUs: 0,
          keyId: "key_1",
          apiId: "api_1",
          identityId: "id_1",
          cost: 1,
          creditsSpent: 0,
          tags: ["a"],
          network: "203.0.113.0/24",
        },
        {
          at: NOON,
          kind: "ratelimit",
          code: "DENIED",
          requestId: "req_2",
          latencyUs: 0,
          namespaceId: "rlns_1",
          identifier: "198.51.100.0/24",
          limit: { limit: 5, duration: 60_000 },
          cost: 2,
          network: "2001:db8:1::/48",
        },
      ],
    );
  });

  it("has every refusal of every call, one by one or in a count, within its bounds", () => {
    const call = fc.record({
      workspaceId: fc.constantFrom("ws_1", "ws_2"),
      keyId: fc.oneof(
        fc.constant(null),
        fc.nat({ max: 20 }).map((i) => `key_${i}`),
      ),
      code: fc.constantFrom("VALID", "EXPIRED", "RATE_LIMITED"),
    });
    const step = fc.oneof({ weight: 8, arbitrary: call }, { weight: 1, arbitrary: fc.constantFrom(1_000, 45_000) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const { verify, pass, rows } = open();
        const calls: Call[] = [];
        for (const one of steps) {
          if (typeof one === "number") pass(one);
          else {
            calls.push(one);
            verify(one);
          }
        }
        pass(60_000);
        const minutes = 2 + steps.filter((one) => one === 45_000).length;
        for (const workspaceId of ["ws_1", "ws_2"]) {
          for (const code of ["EXPIRED", "RATE_LIMITED"]) {
            const made = calls.filter((one) => one.workspaceId === workspaceId && one.code === code);
            const found = rows.filter((row) => row[1] === workspaceId && row[2] === code);
            assert.equal(sum(found), made.length);
            // Each key's own count is never too high.
            for (const row of found) {
              const ofKey = found.filter(([, , , keyId]) => keyId === row[3]);
              const own = ofKey.reduce((total, [, , , , , , , , { leftOut = 0 }]) => total + 1 + leftOut, 0);
              assert(own <= made.filter(({ keyId }) => (keyId ?? "") === row[3]).length);
            }
          }
          // Those that are kept, one for each source at the end of a minute, one for the others of each code.
          assert(rows.filter((row) => row[1] === workspaceId).length <= minutes * (2 * PER_MINUTE + 2 + 1));
        }
      }),
    );
  });

  it("has few of the decisions that passed, each minute some", () => {
    const { verify, pass, rows } = open();
    for (let second = 0; second < 180; second++) {
      for (let i = 0; i < 20; i++) verify({ workspaceId: "ws_1", keyId: "key_1", code: "VALID" });
      pass(1_000);
    }
    assert.equal(rows.length, 3);
  });

  it("shows a rare refusal beside a flood of others in its workspace, and one of another workspace at once", () => {
    const { verify, pass, rows } = open();
    for (let i = 0; i < 5_000; i++) {
      verify({ workspaceId: "ws_1", keyId: "key_1", code: "RATE_LIMITED", tags: [`path=/${i}`] });
    }
    verify({ workspaceId: "ws_1", keyId: "key_2", code: "EXPIRED", requestId: "req_rare" });
    verify({ workspaceId: "ws_2", keyId: "key_3", code: "EXPIRED", requestId: "req_other" });
    pass(1_000);
    assert(rows.some((row) => row[7] === "req_other"));
    assert(rows.some((row) => row[7] === "req_rare"));
    assert(rows.length <= PER_MINUTE + 2);
    pass(60_000);
    assert.equal(sum(rows.filter((row) => row[3] === "key_1")), 5_000);
    assert.equal(rows.at(-1)![8].leftOut, 5_000 - PER_MINUTE / 4 - 1);
  });

  it("holds a bounded number of refusals of unknown and of many keys", () => {
    const { verify, pass, rows } = open();
    for (let i = 0; i < 5_000; i++) verify({ workspaceId: "ws_1", keyId: `key_${i}`, code: "DISABLED" });
    for (let i = 0; i < 5_000; i++) verify({ workspaceId: "ws_1", keyId: null, code: "NOT_FOUND" });
    pass(60_000);
    assert(rows.length <= 2 * PER_MINUTE + 2, String(rows.length));
    assert.equal(sum(rows), 10_000);
  });

  it("reaches back a day however many calls are refused", () => {
    for (const rowsMax of [3_000, 200_000, 1_000_000]) {
      const perDay = 2 * rowsPerMinute(rowsMax) * (levels.day / levels.minute);
      assert(perDay <= rowsMax && perDay > rowsMax * 0.5, String(rowsMax));
    }
    assert.equal(rowsPerMinute(1), 1);
    const log = new DecisionLog(rowsPerMinute(0));
    log.refused("key_1", "EXPIRED", event({ workspaceId: "ws_1", keyId: "key_1", code: "EXPIRED" }), 1);
    assert(log.isEmpty);
  });
});
