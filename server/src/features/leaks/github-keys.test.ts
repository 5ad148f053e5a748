import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { GithubKeys, GithubKeysUnavailable, parseGithubKeys } from "./github-keys.ts";

const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;

const pem = (namedCurve = "P-256") =>
  generateKeyPairSync("ec", { namedCurve }).publicKey.export({ type: "spki", format: "pem" });
const key = pem();
const listOf = (...identifiers: string[]) =>
  JSON.stringify({ public_keys: identifiers.map((key_identifier) => ({ key_identifier, key, is_current: true })) });

function open(read: () => string) {
  const clock = new SimulatedClock(0);
  let reads = 0;
  const keys = new GithubKeys(clock, async () => {
    reads++;
    return read();
  });
  return { clock, keys, reads: () => reads };
}

describe("the keys of GitHub", () => {
  it("are read at first use, once for all who wait", async () => {
    const { keys, reads } = open(() => listOf("a", "b"));
    const found = await Promise.all(["a", "b", "a"].map((identifier) => keys.find(identifier)));
    assert(found.every((one) => one !== undefined));
    assert.equal(reads(), 1);
  });

  it("are read again for an unknown identifier, at most once a minute", async () => {
    let list = listOf("a");
    const { clock, keys, reads } = open(() => list);
    assert.equal(await keys.find("b"), undefined);
    list = listOf("a", "b");
    for (let i = 0; i < 100; i++) assert.equal(await keys.find(`b${i}`), undefined);
    assert.equal(reads(), 1);
    clock.advance(MINUTE);
    assert.notEqual(await keys.find("b"), undefined);
    assert.equal(reads(), 2);
  });

  it("are read again after a day, so that a withdrawn key ends, and are unavailable if that fails", async () => {
    let list = listOf("a");
    const { clock, keys } = open(() => list);
    assert.notEqual(await keys.find("a"), undefined);
    list = listOf("b");
    clock.advance(DAY - 1);
    assert.notEqual(await keys.find("a"), undefined);
    clock.advance(1);
    assert.equal(await keys.find("a"), undefined);
    list = "nonsense";
    clock.advance(DAY);
    await assert.rejects(keys.find("b"), GithubKeysUnavailable);
    list = listOf("b");
    clock.advance(MINUTE);
    assert.notEqual(await keys.find("b"), undefined);
  });

  it("are rejected if they are not on the curve P-256, or too many", () => {
    const one = (text: string | Buffer) => JSON.stringify({ public_keys: [{ key_identifier: "a", key: text }] });
    assert.equal(parseGithubKeys(one(key)).size, 1);
    const rsa = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ type: "spki", format: "pem" });
    for (const wrong of [pem("P-384"), rsa, "nonsense", ""]) assert.throws(() => parseGithubKeys(one(wrong)), /P-256/);
    const many = Array.from({ length: 101 }, (_, i) => String(i));
    assert.throws(() => parseGithubKeys(listOf(...many)));
    for (const text of ["", "[]", "{}", '{"public_keys":[{}]}']) assert.throws(() => parseGithubKeys(text));
  });
});
