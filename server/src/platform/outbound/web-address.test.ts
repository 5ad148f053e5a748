import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isWebAddress } from "./web-address.ts";

describe("an address on the web", () => {
  it("begins with https:// or http:// and has a host", () => {
    for (const text of ["https://example.com", "http://example.com:8080/a?b#c", "https://example.com/ä%20b"]) {
      assert.equal(isWebAddress(text), true, text);
    }
  });

  it("runs nothing, hides nothing and holds no password", () => {
    const others = [
      "",
      "example.com",
      "//example.com",
      "https://",
      "https:example.com",
      "file:///etc/passwd",
      "ftp://example.com",
      "javascript:alert(1)",
      "JavaScript:alert(1)//https://example.com",
      " javascript:alert(1)",
      "java\tscript:alert(1)",
      "data:text/html,<script>alert(1)</script>",
      "vbscript:x",
      "blob:https://example.com/1",
      "\u0001javascript:alert(1)",
      "https://user:password@example.com",
      "https://token@example.com",
      "https://example.com/a b",
      "https://[::1",
      "https://example.com/\n",
      "https://example.com/\0",
      "https://example.com/\u202e",
      "https://example.com/\ud800",
      "https://example.com/\r\nSet-Cookie: a=b",
      "\nhttps://example.com",
      "javascript:1\nhttps://example.com",
    ];
    for (const text of others) assert.equal(isWebAddress(text), false, JSON.stringify(text));
  });
});
