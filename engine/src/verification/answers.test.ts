import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { instantAt } from "../clock/clock.ts";
import { KeyRecords } from "../directory/cached-key.ts";
import { Generations, newGenerationsBuffer } from "../directory/generations.ts";
import { PlannedKey } from "../directory/planned-key.ts";
import type { DirectoryKey } from "../directory/stored.ts";
import { jsonAnswers, valueAnswers } from "./answers.ts";
import { selectLimits } from "./limits.ts";
import { verificationCodes } from "./request.ts";

const records = new KeyRecords(new Generations(newGenerationsBuffer(1_000)));

const object = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue(), { maxKeys: 3 });
const meta = fc.option(object.map((value) => JSON.stringify(value)));
const name = fc.string({ unit: "binary" });
const limits = fc.array(
  fc.record({
    id: fc.constantFrom("rl_1", "rl_2"),
    name,
    limit: fc.integer({ min: 1 }),
    duration: fc.constantFrom(1_000, 60_000),
    mode: fc.constantFrom("standard", "strict"),
    auto_apply: fc.constantFrom(0, 1),
    shadow: fc.constantFrom(0, 1),
  }),
  { maxLength: 3 },
);
const plan = fc.option(fc.record({ id: fc.constant("plan_1"), name }));
const concurrency = fc.option(fc.constant('[{"name":"calls","limit":3}]'));

const keys = fc.record({
  hash: fc.constant("hash"),
  workspace_id: fc.constant("ws_1"),
  id: fc.constant("key_1"),
  api_id: fc.constantFrom("api_1", "api_2"),
  pool_id: fc.constant("pool_1"),
  hash_version: fc.constant(1),
  is_unused: fc.constantFrom(0, 1),
  name: fc.option(name),
  meta,
  enabled: fc.constantFrom(0, 1),
  expires_at: fc.option(fc.integer({ min: 0 })),
  migration_id: fc.constant(null),
  allowed_ips: fc.constant(null),
  api_allowed_ips: fc.constant(null),
  api_own_key_access: fc.constant(0),
  api_own_key_derivation: fc.constant(0),
  workspace_enabled: fc.constant(1),
  balance: fc.constant(null),
  plan,
  budgets: fc.constant([]),
  identity: fc.option(
    fc.record({
      id: fc.constant("id_1"),
      external_id: name,
      plan,
      budget_id: fc.constant(null),
      meta,
      concurrency,
      ratelimits: limits,
    }),
  ),
  concurrency,
  ratelimits: limits,
  roles: fc.array(name, { maxLength: 2 }),
  permissions: fc.array(name, { maxLength: 2 }),
}) satisfies fc.Arbitrary<object>;

/** What a limit can answer. */
const states = fc.record({
  allowed: fc.boolean(),
  remaining: fc.nat(),
  reset: fc.nat(),
  retryAfter: fc.option(fc.nat(), { nil: undefined }),
});

const answers = fc.record({
  key: keys,
  code: fc.constantFrom(...verificationCodes),
  seesAll: fc.boolean(),
  isPlanned: fc.boolean(),
  text: fc.constantFrom("", ',"credits":3', ',"retryAfter":5'),
  decided: fc.option(
    fc.record({
      allowed: fc.boolean(),
      retryAfter: fc.option(fc.nat(), { nil: undefined }),
      states: fc.array(states, { minLength: 8, maxLength: 8 }),
    }),
  ),
});

/** A function that gives the answer of one call in both forms. */
function answering({
  key,
  code,
  seesAll,
  isPlanned,
  text,
  decided,
}: typeof answers extends fc.Arbitrary<infer T> ? T : never) {
  const { record } = records.of(key as unknown as DirectoryKey);
  assert(record);
  const answered = isPlanned ? new PlannedKey(record, null, null) : record;
  const selected = selectLimits(answered, undefined);
  const isCharged = decided !== null && selected !== undefined && "charges" in selected;
  const more = isCharged
    ? {
        selected,
        decided: {
          outcome: "decided" as const,
          at: instantAt(0),
          allowed: decided.allowed,
          retryAfter: decided.retryAfter,
          limits: decided.states.slice(0, selected.limits.length),
        },
      }
    : text;
  return {
    value: () => valueAnswers.answer(answered, code, seesAll, more),
    parsed: () => JSON.parse(jsonAnswers.answer(answered, code, seesAll, more)),
  };
}

/** Adds a member to every object within. */
function spoil(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const member of Object.values(value)) spoil(member);
  if (Array.isArray(value)) value.push("spoilt");
  else Object.defineProperty(value, "spoilt", { value: true, enumerable: true });
}

describe("answers as values", () => {
  it("are what the JSON of the same call has, in the same order", () => {
    fc.assert(
      fc.property(answers, (call) => {
        const { value, parsed } = answering(call);
        assert.equal(JSON.stringify(value()), JSON.stringify(parsed()));
        assert.equal(valueAnswers.isValid(value()), jsonAnswers.isValid(JSON.stringify(parsed())));
      }),
      { numRuns: 1_000 },
    );
    assert.deepEqual(valueAnswers.notFound(), JSON.parse(jsonAnswers.notFound()));
  });

  it("are the caller's own: changes of one are in no other one", () => {
    fc.assert(
      fc.property(answers, (call) => {
        const { value, parsed } = answering(call);
        // The first one can fill a cache, the second one read it.
        for (let i = 0; i < 2; i++) spoil(value());
        assert.deepEqual(value(), parsed());
      }),
    );
    spoil(valueAnswers.notFound());
    assert.deepEqual(valueAnswers.notFound(), JSON.parse(jsonAnswers.notFound()));
  });
});
