import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { describe, it } from "node:test";
import { type InjectOptions, inject } from "light-my-request";
import { AnswerBatch, respond } from "./respond.ts";

const PATH = "/v2/keys.getKey";
const answer = (body: string, status = 200) => ({ status, body, requestId: "req_123456789" });

const receive = (handle: (response: ServerResponse) => void, request: InjectOptions = { method: "POST", url: PATH }) =>
  inject((_request, response) => handle(response as unknown as ServerResponse), request);

describe("respond", () => {
  for (const body of ['{"data":"plain"}', '{"data":"é"}', '{"data":"日本 🔑"}']) {
    it(`writes ${body} as UTF-8 with its length in bytes`, async () => {
      const received = await receive((response) => respond(response, answer(body), PATH, false));
      assert.equal(received.rawPayload.toString("utf8"), body);
      assert.equal(received.headers["content-length"], String(Buffer.byteLength(body)));
    });
  }

  it("sends JSON without a charset, and some problems as application/problem+json", async () => {
    const typeOf = async (status: number, path: string) =>
      (await receive((response) => respond(response, answer("{}", status), path, false))).headers["content-type"];
    assert.equal(await typeOf(200, PATH), "application/json");
    assert.equal(await typeOf(404, PATH), "application/json");
    assert.equal(await typeOf(429, PATH), "application/problem+json");
    assert.equal(await typeOf(200, "/v2/identities.deleteIdentity"), "application/json");
    assert.equal(await typeOf(404, "/v2/identities.deleteIdentity"), "application/problem+json");
  });

  it("adds the headers of a problem, and `Connection: close`", async () => {
    const problem = { ...answer("{}", 503), headers: { "retry-after": "1" } };
    const { headers } = await receive((response) => respond(response, problem, PATH, true));
    assert.equal(headers["retry-after"], "1");
    assert.equal(headers["x-request-id"], "req_123456789");
    assert.equal(headers.connection, "close");
  });
});

describe("AnswerBatch", () => {
  it("writes every answer, batch after batch", async () => {
    const batch = new AnswerBatch();
    const send = (body: string) => receive((response) => batch.add(response, answer(body), PATH, false));
    const first = await Promise.all(["1", "2", "3"].map(send));
    assert.deepEqual(
      first.map(({ body }) => body),
      ["1", "2", "3"],
    );
    assert.equal((await send("4")).body, "4");
  });
});
