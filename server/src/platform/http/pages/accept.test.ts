import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { acceptsCoding, prefersJson } from "./accept.ts";

describe("prefersJson", () => {
  const cases: [accept: string | undefined, json: boolean][] = [
    [undefined, false],
    ["", false],
    ["*/*", false],
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false],
    ["application/json", true],
    ["APPLICATION/JSON; charset=utf-8", true],
    ["application/problem+json", true],
    ["text/html;q=0.5, application/json", true],
    ["text/html, application/json", false],
    ["application/json;q=0", false],
    ["application/json;q=invalid", false],
  ];
  for (const [accept, json] of cases) {
    it(`is ${json} for ${accept}`, () => assert.equal(prefersJson(accept), json));
  }
});

describe("acceptsCoding", () => {
  for (const [header, expected] of [
    [undefined, false],
    ["", false],
    ["gzip", true],
    ["gzip, deflate, br", true],
    ["GZIP;q=0.5", true],
    ["x-gzip", true],
    ["gzip;q=0", false],
    ["gzip; q=0.0, *", false],
    ["*;q=0.1", true],
    ["*;q=0", false],
    ["br, identity", false],
    ["gzipped", false],
  ] as const) {
    it(`${header} is ${expected}`, () => assert.equal(acceptsCoding(header, "gzip"), expected));
  }
  it("tells codings apart", () => assert(acceptsCoding("gzip, br", "br") && !acceptsCoding("gzip", "br")));
});
