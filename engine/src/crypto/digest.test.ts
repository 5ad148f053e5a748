import assert from "node:assert/strict";
import { test } from "node:test";
import { fullDigest, sha256 } from "./digest.ts";

test("a full digest is the SHA-256 of the text in UTF-8, as holds have stored it since their first release", () => {
  for (const text of ["", '{"credits":7,"ratelimits":[]}', '[{"name":"Grüße 🙂"}]']) {
    assert.equal(fullDigest(text), sha256(text).toString("base64url"));
  }
});
