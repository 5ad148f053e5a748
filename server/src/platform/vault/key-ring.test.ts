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
import { newSealingKey, sealingKeyFingerprint } from "../../../../engine/src/crypto/seal.ts";
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
  it("creates its key at first use, readable only by its owner", (t) => {
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

  it("ignores a half-written key file", (t) => {
    const folder = makeFolder(t);
    // Left behind by a crashed process with the same process id.
    writeFileSync(join(folder, `vault-key.${process.pid}`), "AAAA", { mode: 0o600 });
    const ring = openFolder(folder);
    assert(ring.isEmpty);
    assert(ring.first());
    assert.deepEqual(readdirSync(folder), ["vault-key"]);
  });

  it("rejects a key file with invalid content", (t) => {
    const folder = makeFolder(t);
    writeFileSync(join(folder, "vault-key"), "not a key");
    assert.throws(() => openFolder(folder), /^Error: A vault key is 32 bytes as base64$/);
  });

  it("creates the next key once, and continues with it after an interruption", (t) => {
    const folder = makeFolder(t);
    const first = openFolder(folder).first()!;
    const next = openFolder(folder).next()!;
    assert.notEqual(next, first);
    assert.equal(statSync(join(folder, "vault-key.next")).mode & 0o777, 0o600);
    assert.equal(openFolder(folder).next(), next);
    assert.equal(openFolder(folder).first(), first);
  });

  it("finds a key that another process has written", (t) => {
    const folder = makeFolder(t);
    const ring = openFolder(folder);
    const first = openFolder(folder).first()!;
    assert(ring.find(first));
    const next = openFolder(folder).next()!;
    assert.equal(sealingKeyFingerprint(ring.find(next)!), next);
    assert.equal(ring.find("unknown"), undefined);
  });

  it("finds the next key while it replaces the current one", (t) => {
    const folder = makeFolder(t);
    const ring = openFolder(folder);
    ring.first();
    const next = openFolder(folder).next()!;
    renameSync(join(folder, "vault-key.next"), join(folder, "vault-key"));
    assert(ring.find(next));
  });

  it("replaces the current key by the next one only when the next one is the vault's master key", (t) => {
    const folder = makeFolder(t);
    const ring = openFolder(folder);
    const first = ring.first()!;
    const next = ring.next()!;
    for (const current of [first, "unknown"]) {
      ring.promote(current);
      assert.deepEqual(openFolder(folder).fingerprints, [first, next]);
    }
    ring.promote(next);
    assert.deepEqual(openFolder(folder).fingerprints, [next]);
    assert.deepEqual(readdirSync(folder), ["vault-key"]);
    ring.promote(next);
    assert.deepEqual(openFolder(folder).fingerprints, [next]);
  });
});

describe("a key ring from the configuration", () => {
  it("starts with the first key and rotates to the last, in every call", () => {
    const [current, next] = [newKey(), newKey()];
    const ring = openGiven(current, next);
    assert.equal(ring.first(), fingerprintOf(current));
    assert.equal(ring.next(), fingerprintOf(next));
    assert.equal(ring.next(), fingerprintOf(next));
    ring.promote(fingerprintOf(next));
    assert.equal(ring.first(), fingerprintOf(current));
  });

  it("has no next key with one key, even if it is given twice", () => {
    const key = newKey();
    assert.equal(openGiven(key).next(), undefined);
    assert.equal(openGiven(key, key).next(), undefined);
  });

  it("reads base64 with and without padding, in both alphabets", () => {
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
  it("stays empty", () => {
    const ring = new KeyRing({ kind: "none" });
    assert.equal(ring.first(), undefined);
    assert.equal(ring.next(), undefined);
    assert(ring.isEmpty);
  });
});
