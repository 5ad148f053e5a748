import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Operation } from "../../rpc/operation.ts";
import { type Head, KeptHeads } from "./kept-heads.ts";
import { readPlainHead } from "./plain-head.ts";

function request(...fields: string[]): Buffer {
  const lines = ["POST /v2/keys.verifyKey HTTP/1.1", "Host: x", "Content-Length: 2", ...fields];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n{}`);
}

function headOf(chunk: Buffer, address?: string): Head {
  const plain = readPlainHead(chunk, 0)!;
  return { ...plain, bytes: chunk.length, operation: {} as Operation, credentials: {} as Head["credentials"], address };
}

describe("KeptHeads", () => {
  it("shares the latest 256 heads", () => {
    const heads = new KeptHeads();
    const requests = Array.from({ length: 300 }, (_, i) => request(`Authorization: Bearer ${i}`));
    const kept = requests.map((chunk) => heads.keep(headOf(chunk), chunk, 0));
    const found = requests.map((chunk) => heads.find(Buffer.concat([Buffer.from("before"), chunk]), 6));
    assert.deepEqual(found, [...kept.slice(0, 44).map(() => undefined), ...kept.slice(44)]);
    assert.equal(heads.find(requests[299]!.subarray(0, -5), 0), undefined);
  });

  it("shares none that is not repeated, and keeps none that is long", () => {
    const heads = new KeptHeads();
    const once = request("Idempotency-Key: 1");
    const forwarded = request("X-Forwarded-For: 203.0.113.7");
    const long = request(`Cookie: ${"x".repeat(2_048)}`);
    assert.deepEqual(heads.keep(headOf(once), once, 0)?.text, once.subarray(0, -2));
    assert.notEqual(heads.keep(headOf(forwarded, "203.0.113.7"), forwarded, 0), undefined);
    assert.equal(heads.keep(headOf(long), long, 0), undefined);
    for (const chunk of [once, forwarded, long]) assert.equal(heads.find(chunk, 0), undefined);
  });
});
