import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { text } from "../src/pages/audit/changes.ts";

describe("the values of audit entries and events", () => {
  it("shows times and lengths of time in words", () => {
    const time = Date.parse("2026-11-22T12:00:00Z");
    for (const member of ["usedAt", "expires", "expiresAt", "windowEnd"]) assert.match(text(member, time), /2026/);
    assert.equal(text("duration", 3_600_000), "1 hour");
    assert.equal(text("value", 12_000), "12,000");
  });

  it("shows lists of texts without their JSON, and the beginning of a long text", () => {
    assert.equal(text("permissions", ["documents.read", "documents.write"]), "documents.read, documents.write");
    assert.equal(text("meta", { plan: "pro" }), '{"plan":"pro"}');
    assert.equal(text("balance", null), "null");
    assert.equal(text("meta", { beginning: "abc", length: 70_000 }), "abc… (70000 characters)");
  });
});
