import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { localUrl } from "./connection.ts";

describe("the address of a service on this machine", () => {
  it("has the default where a variable is empty", () => {
    assert.equal(localUrl({}), "http://127.0.0.1:3000");
    assert.equal(localUrl({ LATCHKEY_HOST: "", LATCHKEY_PORT: "" }), "http://127.0.0.1:3000");
    assert.equal(localUrl({ LATCHKEY_HOST: "::", LATCHKEY_PORT: "4000" }), "http://[::1]:4000");
  });
});
