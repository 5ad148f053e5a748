/** Bodies that cost as much as possible to parse. None blocks the event loop, and another tenant is unaffected. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeFolder, ROOT_KEY, type Server } from "../process.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

const ROUNDS = 3;
const hash = (i: number) => String(i).padStart(64, "0");
const members = (count: number) => Array.from({ length: count }, (_, i) => `"m${i}":0`).join(",");

interface Attack {
  operation: string;
  /** JSON, and smaller than the maximum of 10 MiB. */
  body(apiId: string): string;
  status: number;
  /** The root key lacks the permission. */
  isUnpermitted?: boolean;
}

const attacks: Record<string, Attack> = {
  "an import of 5 million numbers without permission": {
    operation: "keys.migrateKeys",
    body: (apiId) => `{"apiId":"${apiId}","migrationId":"mine","keys":[${"0,".repeat(5_000_000)}0]}`,
    status: 403,
    isUnpermitted: true,
  },
  "an import of 5 million numbers": {
    operation: "keys.migrateKeys",
    body: (apiId) => `{"apiId":"${apiId}","migrationId":"mine","keys":[${"0,".repeat(5_000_000)}0]}`,
    status: 400,
  },
  "an import of 100,000 keys with an error in the last one": {
    operation: "keys.migrateKeys",
    body: (apiId) =>
      `{"apiId":"${apiId}","migrationId":"mine","keys":[${Array.from({ length: 100_000 }, (_, i) => `{"hash":"${hash(i)}"}`).join(",")},{}]}`,
    status: 400,
  },
  "700,000 unknown members": {
    operation: "keys.createKey",
    body: (apiId) => `{"apiId":"${apiId}",${members(700_000)}}`,
    status: 400,
  },
  "the maximum number of unknown members": {
    operation: "keys.createKey",
    body: (apiId) => `{"apiId":"${apiId}",${members(19_000)}}`,
    status: 400,
  },
  "the maximum of escaped text": {
    operation: "keys.createKey",
    body: (apiId) => `{"apiId":"${apiId}","name":"${"\\n".repeat(1_500_000)}"}`,
    status: 400,
  },
  "10 MiB of escaped text": {
    operation: "keys.createKey",
    body: (apiId) => `{"apiId":"${apiId}","name":"${"\\n".repeat(5_000_000)}"}`,
    status: 400,
  },
};

async function post(server: Server, operation: string, rootKey: string, body: string): Promise<number> {
  const response = await fetch(`${server.address}/v2/${operation}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${rootKey}` },
    body,
  });
  await response.arrayBuffer();
  return response.status;
}

describe("a heavy body", () => {
  for (const [what, { operation, body, status, isUnpermitted }] of Object.entries(attacks)) {
    it(`does not affect an innocent tenant: ${what}`, async (t) => {
      const server = await startMonitored({ directory: makeFolder(t) });
      const { apiId } = await server.ok("apis.createApi", { name: "innocent" });
      const { key } = await server.ok("keys.createKey", { apiId });
      const hostile = await server.ok("workspaces.createWorkspace", { name: "hostile" });
      const theirs = await server.ok("apis.createApi", { name: "hostile" }, hostile.key);
      const unpermitted = await server.ok(
        "rootKeys.createRootKey",
        { name: "unpermitted", permissions: ["audit.*.read_event"] },
        hostile.key,
      );
      const text = body(theirs.apiId);
      const measured = await measureBeside(
        server,
        { operation: "keys.verifyKey", bodies: [{ key }], rootKey: ROOT_KEY },
        async () => {
          const statuses: number[] = [];
          for (let i = 0; i < ROUNDS; i++) {
            statuses.push(await post(server, operation, isUnpermitted ? unpermitted.key : hostile.key, text));
          }
          return statuses;
        },
      );
      report(t, what, measured);
      assert.deepEqual(measured.result, Array(ROUNDS).fill(status));
      assertUnharmed(measured);
    });
  }
});
