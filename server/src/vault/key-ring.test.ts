import assert from "node:assert/strict";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { newSealingKey, sealingKeyFingerprint } from "../crypto/seal.ts";
import { KeyRing } from "./key-ring.ts";

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-ring-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const newKey = () => newSealingKey().toString("base64");
const fingerprintOf = (key: string) => sealingKeyFingerprint(Buffer.from(key, "base64"));
const openFolder = (folder: string) => new KeyRing({ kind: "folder", folder });
const openGiven = (...keys: string[]) => new KeyRing({ kind: "given", keys });

describe("a key ring in the data folder", () => {
  it("makes its key when it is asked for the first time, for its owner's eyes only", (t) => {
    const folder = join(makeFolder(t), "data");
    const ring = openFolder(folder);
    assert(ring.isEmpty);
    assert(!existsSync(folder));
    const first = ring.first()!;
    assert.deepEqual(readdirSync(folder), ["vault-key"]);
    assert.equal(statSync(join(folder, "vault-key")).mode & 0o777, 0o600);
    assert.equal(fingerprintOf(readFileSync(join(folder, "vault-key"), "utf8").trim()), first);
    assert.deepEqual(openFolder(folder).fingerprints, [first]);
    assert.equal(openFolder(folder).first(), first);
  });

  it("does not take what is half written for a key, nor trip over it", (t) => {
    const folder = makeFolder(t);
    // Of a process with this one's number that died before.
    writeFileSync(join(folder, `vault-key.${process.pid}`), "AAAA", { mode: 0o600 });
    const ring = openFolder(folder);
    assert(ring.isEmpty);
    assert(ring.first());
    assert.deepEqual(readdirSync(folder), ["vault-key"]);
  });

  it("says so when a key file holds something else", (t) => {
    const folder = makeFolder(t);
    writeFileSync(join(folder, "vault-key"), "not a key");
    assert.throws(() => openFolder(folder), /^Error: A vault key is 32 bytes as base64$/);
  });

  it("makes the next key once, and goes on with it after it was stopped", (t) => {
    const folder = makeFolder(t);
    const first = openFolder(folder).first()!;
    const next = openFolder(folder).next()!;
    assert.notEqual(next, first);
    assert.equal(statSync(join(folder, "vault-key.next")).mode & 0o777, 0o600);
    assert.equal(openFolder(folder).next(), next);
    assert.equal(openFolder(folder).first(), first);
  });

  it("finds a key that another process has put there", (t) => {
    const folder = makeFolder(t);
    const ring = openFolder(folder);
    const first = openFolder(folder).first()!;
    assert(ring.find(first));
    const next = openFolder(folder).next()!;
    assert.equal(sealingKeyFingerprint(ring.find(next)!), next);
    assert.equal(ring.find("unheard of"), undefined);
  });

  it("finds the next key while it takes the place of the current one", (t) => {
    const folder = makeFolder(t);
    const ring = openFolder(folder);
    ring.first();
    const next = openFolder(folder).next()!;
    renameSync(join(folder, "vault-key.next"), join(folder, "vault-key"));
    assert(ring.find(next));
  });

  it("lets the next key take the place of the current one, only when the vault stands under it", (t) => {
    const folder = makeFolder(t);
    const ring = openFolder(folder);
    const first = ring.first()!;
    const next = ring.next()!;
    for (const current of [first, "unheard of"]) {
      ring.settle(current);
      assert.deepEqual(openFolder(folder).fingerprints, [first, next]);
    }
    ring.settle(next);
    assert.deepEqual(openFolder(folder).fingerprints, [next]);
    assert.deepEqual(readdirSync(folder), ["vault-key"]);
    ring.settle(next);
    assert.deepEqual(openFolder(folder).fingerprints, [next]);
  });
});

describe("a key ring that was given", () => {
  it("starts with the first key and changes to the last, however often it is asked", () => {
    const [current, next] = [newKey(), newKey()];
    const ring = openGiven(current, next);
    assert.equal(ring.first(), fingerprintOf(current));
    assert.equal(ring.next(), fingerprintOf(next));
    assert.equal(ring.next(), fingerprintOf(next));
    ring.settle(fingerprintOf(next));
    assert.equal(ring.first(), fingerprintOf(current));
  });

  it("has nothing to change to with one key, be it given twice", () => {
    const key = newKey();
    assert.equal(openGiven(key).next(), undefined);
    assert.equal(openGiven(key, key).next(), undefined);
  });

  it("reads base64 with and without its end, in both alphabets", () => {
    const key = Buffer.alloc(32, 0xfb);
    for (const text of [key.toString("base64"), key.toString("base64url"), key.toString("base64").replace("=", "")]) {
      assert.deepEqual(openGiven(text).fingerprints, [sealingKeyFingerprint(key)]);
    }
    for (const text of ["", "AAAA", `${newKey()}A`, "!".repeat(43)]) {
      assert.throws(() => openGiven(text), { message: "A vault key is 32 bytes as base64" });
    }
  });
});

describe("a key ring without a source", () => {
  it("is empty and stays so", () => {
    const ring = new KeyRing({ kind: "none" });
    assert.equal(ring.first(), undefined);
    assert.equal(ring.next(), undefined);
    assert(ring.isEmpty);
  });
});
