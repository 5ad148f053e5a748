import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { nextActiveFrom, PUBLISHED_BEFORE, publishedKeysAt, type Rotation, signingKeyAt } from "./rotation.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const CLOCKS_DIFFER = 5 * MINUTE;

interface Key {
  readonly algorithm: Rotation["algorithm"];
  readonly activeFrom: number;
  readonly createdAt: number;
}

const rotations = fc.record({
  algorithm: fc.constant("RS256" as const),
  every: fc.integer({ min: 2 * HOUR, max: 400 * HOUR }),
  tokenLife: fc.integer({ min: 10_000, max: 5 * MINUTE }),
});
/** How much time passes between two reads of the keys. */
const pauses = fc.array(fc.integer({ min: 1, max: 50 * HOUR }), { minLength: 1, maxLength: 60 });

/** The keys that are made if they are read after each of these pauses. */
function keysOver(gaps: readonly number[], rotation: Rotation): { keys: Key[]; reads: number[] } {
  const keys: Key[] = [];
  const reads: number[] = [];
  let now = 1_768_478_400_000;
  for (const gap of gaps) {
    now += gap;
    reads.push(now);
    const activeFrom = nextActiveFrom(keys, rotation, instantAt(now));
    if (activeFrom !== undefined) keys.push({ algorithm: rotation.algorithm, activeFrom, createdAt: now });
  }
  return { keys, reads };
}

describe("the rotation of signing keys", () => {
  it("publishes each key but the first for an hour before it signs, and one at a time", () => {
    fc.assert(
      fc.property(pauses, rotations, (gaps, rotation) => {
        const { keys } = keysOver(gaps, rotation);
        assert.equal(keys[0]!.activeFrom, keys[0]!.createdAt);
        for (const [i, { activeFrom, createdAt }] of keys.entries()) {
          if (i === 0) continue;
          assert(activeFrom - createdAt >= PUBLISHED_BEFORE);
          assert(activeFrom - keys[i - 1]!.activeFrom >= rotation.every);
          assert(createdAt >= keys[i - 1]!.activeFrom);
        }
      }),
    );
  });

  it("makes a next key in time if the keys are read often enough", () => {
    fc.assert(
      fc.property(rotations, (rotation) => {
        const { keys } = keysOver(Array(200).fill(20 * MINUTE), rotation);
        for (const [i, { activeFrom }] of keys.entries()) {
          if (i > 0) assert(activeFrom - keys[i - 1]!.activeFrom <= rotation.every + 20 * MINUTE);
        }
      }),
    );
  });

  it("verifies every token for its whole life, also where clocks differ by minutes", () => {
    const skews = fc.integer({ min: -CLOCKS_DIFFER / 2, max: CLOCKS_DIFFER / 2 - 1 });
    fc.assert(
      fc.property(
        pauses,
        rotations,
        skews,
        skews,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (gaps, rotation, at, by, share) => {
          const { keys, reads } = keysOver(gaps, rotation);
          const age = Math.floor(share * rotation.tokenLife);
          const times = [...reads, ...keys.flatMap(({ activeFrom }) => [activeFrom - 1, activeFrom, activeFrom + 1])];
          for (const time of times.filter((one) => one >= keys[0]!.activeFrom)) {
            const signing = signingKeyAt(keys, instantAt(time + at))!;
            assert(publishedKeysAt(keys, rotation, instantAt(time + age + by)).includes(signing));
          }
        },
      ),
    );
  });

  it("forgets keys whose tokens have ended", () => {
    fc.assert(
      fc.property(pauses, rotations, (gaps, rotation) => {
        const { keys } = keysOver(gaps, rotation);
        const end = keys.at(-1)!.activeFrom + rotation.tokenLife + CLOCKS_DIFFER;
        assert.deepEqual(publishedKeysAt(keys, rotation, instantAt(end)), keys.slice(-1));
      }),
    );
  });

  it("changes the algorithm with the next key, and makes no further one meanwhile", () => {
    const now = 1_768_478_400_000;
    const rotation = { algorithm: "ES256", every: 720 * HOUR, tokenLife: 5 * MINUTE } as const;
    const keys: Key[] = [{ algorithm: "RS256", activeFrom: now, createdAt: now }];
    const activeFrom = nextActiveFrom(keys, rotation, instantAt(now));
    assert.equal(activeFrom, now + HOUR);
    keys.push({ algorithm: "ES256", activeFrom: now + HOUR, createdAt: now });
    assert.equal(nextActiveFrom(keys, rotation, instantAt(now)), undefined);
    assert.equal(nextActiveFrom(keys, { ...rotation, algorithm: "RS256" }, instantAt(now)), undefined);
    assert.equal(signingKeyAt(keys, instantAt(now + HOUR - 1))!.algorithm, "RS256");
    assert.equal(signingKeyAt(keys, instantAt(now + HOUR))!.algorithm, "ES256");
  });
});
