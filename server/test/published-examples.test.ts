/** The analytics examples of the published document work on any day and return the documented counts. */
import assert from "node:assert/strict";
import { it } from "node:test";
import inject from "light-my-request";
import {
  exampleApi,
  exampleCount,
  exampleKey,
  exampleKeyInput,
  exampleTime,
  shiftExample,
} from "../src/platform/vocabulary/examples.ts";
import { openTestServer } from "./harness.ts";

const HOUR = 3_600_000;

it("publishes analytics examples with times of the last two hours", async (t) => {
  const server = await openTestServer();
  t.after(() => server.close());
  const document = async () => (await inject(server.service.dispatch, "/openapi.json")).json();
  assert.equal(server.clock.now(), exampleTime);
  assert.equal((await document()).paths["/v2/analytics.getKeyStats"].post.operationId, "analytics.getKeyStats");

  server.clock.step(100 * 24 * HOUR);
  const apiId = await server.createApi(exampleApi.name);
  const { keyId, key } = await server.createKey(apiId, { ...exampleKeyInput, apiId, expires: undefined });
  assert.equal((await server.verify(key, { tags: ["path=/documents"] })).valid, true);
  await server.ok("ratelimits.limit", exampleCount);
  await server.pass(1_000);

  // The example of the next hour is at the start of the hour in which the key was verified.
  server.clock.step(HOUR + 123_456);
  const { paths } = await document();
  for (const name of ["getKeyStats", "getApiStats", "getIdentityStats", "getRatelimitStats"]) {
    const { requestBody, responses } = paths[`/v2/analytics.${name}`].post;
    const [[title, request]] = Object.entries<{ value: unknown }>(requestBody.content["application/json"].examples) as [
      [string, { value: unknown }],
    ];
    const response = responses[200].content["application/json"].examples[title];
    const own = (value: unknown) =>
      JSON.parse(JSON.stringify(value).replaceAll(exampleKey.keyId, keyId).replaceAll(exampleApi.apiId, apiId));
    assert.deepEqual(await server.ok(`analytics.${name}`, own(request.value)), own(response.value.data), name);
  }
});

it("moves times and no other numbers", () => {
  const example = { start: exampleTime, series: [{ time: exampleTime + 60_000, total: 1 }], limit: 1e12, key: "1" };
  assert.deepEqual(shiftExample(example, HOUR), {
    start: exampleTime + HOUR,
    series: [{ time: exampleTime + 60_000 + HOUR, total: 1 }],
    limit: 1e12,
    key: "1",
  });
});
