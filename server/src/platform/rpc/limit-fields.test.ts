import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { sha256 } from "../../../../engine/src/crypto/digest.ts";
import { parseStringList } from "../../../test/structured-fields.ts";
import { type LimitField, limitHeaders } from "./limit-fields.ts";

const shared = new URL("../../../../sdk/test/limit-headers.json", import.meta.url);
const { now, cases } = JSON.parse(readFileSync(shared, "utf8")) as {
  now: number;
  cases: { name: string; limits: (LimitField & { unit?: string })[]; headers: Record<string, string> }[];
};

describe("the headers about limits", () => {
  // Only clients have limits without a window.
  for (const { name, limits, headers } of cases.filter(({ limits }) => limits.every(({ duration }) => duration))) {
    it(`are those of the clients: ${name}`, () => assert.deepEqual(limitHeaders(limits, now), headers));
  }

  it("are Structured Fields with the values of every limit (rule 132)", () => {
    const amount = fc.integer({ min: 0, max: 1e12 });
    const limit = fc.record({
      name: fc.string({ minLength: 1, maxLength: 40, unit: "grapheme" }),
      limit: amount,
      duration: fc.integer({ min: 1, max: 31_622_400_000 }),
      exceeded: fc.boolean(),
      remaining: amount,
      reset: fc.integer({ min: now - 1e9, max: now + 31_622_400_000 }),
      retryAfter: fc.option(fc.integer({ min: 0, max: 1e9 }), { nil: undefined }),
      partition: fc.option(fc.string({ maxLength: 40 }), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(limit, { maxLength: 8 }), (limits) => {
        const headers = limitHeaders(limits, now);
        const policies = parseStringList(headers["RateLimit-Policy"] ?? "");
        const states = parseStringList(headers.RateLimit ?? "");
        assert.equal(policies.length > 0, limits.length > 0);
        assert(policies.length < 2 || headers["RateLimit-Policy"]!.length <= 1_024);
        const left = [...limits];
        for (const [i, { value, parameters }] of policies.entries()) {
          const state = states[i]!;
          // Items of both headers are in the same order.
          assert.deepEqual([state.value, state.parameters.get("pk")], [value, parameters.get("pk")]);
          const at = left.findIndex(
            ({ name, limit, remaining, partition }) =>
              decodeURIComponent(value) === name.toWellFormed() &&
              parameters.get("q") === limit &&
              state.parameters.get("r") === remaining &&
              (partition === undefined) === !parameters.has("pk"),
          );
          assert(at >= 0, value);
          const [{ duration, exceeded, reset, retryAfter, partition }] = left.splice(at, 1) as [LimitField];
          assert.equal(parameters.get("w"), Math.ceil(duration / 1_000));
          if (partition !== undefined) {
            assert.deepEqual(parameters.get("pk"), sha256(partition).subarray(0, 9));
          }
          const seconds = state.parameters.get("t") as number;
          assert(seconds >= 0 && (seconds === 0 || (seconds - 1) * 1_000 < reset - now));
          if (exceeded && retryAfter !== undefined) assert(seconds <= Math.ceil(retryAfter / 1_000));
        }
        assert.equal(states.length, policies.length);
      }),
    );
  });

  it("begin with the limits that are exceeded, then with those of which the least is left", () => {
    const one = { duration: 1_000, exceeded: false, reset: now, limit: 10 };
    const limits = [
      { ...one, name: "half", remaining: 5 },
      { ...one, name: "over", remaining: 9, exceeded: true },
      { ...one, name: "tenth", remaining: 1 },
    ];
    const names = parseStringList(limitHeaders(limits, now).RateLimit!).map(({ value }) => value);
    assert.deepEqual(names, ["over", "tenth", "half"]);
  });
});
