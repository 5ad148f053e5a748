/**
 * The suites of verification and revocation again, with an edge between callers and the service (rules 169, 176 and 177). Those of
 * limits are in `edge-suites.slow.test.ts`. `LATCHKEY_TESTED_EDGE=on npm test -- scenarios/holds` puts one before any others.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openTestServer } from "./harness.ts";

process.env.LATCHKEY_TESTED_EDGE = "on";

await import("./scenarios/revocation.test.ts");
await import("./scenarios/verify-key.test.ts");
await import("./scenarios/revoked-spends.test.ts");

describe("an edge that passes on a call (rule 176)", () => {
  it("does not lend its address to a caller whose forwarded address cannot be read", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const { key } = await server.createKey(await server.createApi(), { allowedIps: ["127.0.0.0/8"] });
    const codeOf = async (forwarded: string | undefined, more: object) => {
      const headers = { "x-forwarded-for": forwarded };
      return (await server.verify(key, more, { headers, from: "127.0.0.1" })).code;
    };
    // Home alone decides calls that hold.
    for (const more of [{}, { hold: { ttl: 60_000 } }]) {
      assert.equal(await codeOf("127.0.0.9", more), "VALID");
      assert.equal(await codeOf("unknown", more), "FORBIDDEN");
    }
  });
});
