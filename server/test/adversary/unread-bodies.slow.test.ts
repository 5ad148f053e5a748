/** Callers that send incomplete large bodies, beside an innocent tenant. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import { eventually, makeFolder, ROOT_KEY, type Server } from "../process.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

const CONNECTIONS = 100;
const ANNOUNCED = 10 * 1024 * 1024;
const MIB = 1024 * 1024;
/** How long the attack is repeated: once takes 0.3 s, too short for a percentile and for the largest memory. */
const ATTACK_MS = 4_000;

/**
 * Sends all but the last byte of a body of 10 MiB, as far as the service reads it; returns the head of the answer, if
 * there is one.
 */
async function sendUnfinished(
  server: Server,
  path: string,
  rootKey: string | null,
  sockets: Socket[],
): Promise<string> {
  const { port } = new URL(server.address);
  const socket = connect(Number(port), "127.0.0.1");
  sockets.push(socket);
  let answer = "";
  let over = false;
  const done = new Promise<void>((resolve) => {
    socket.setEncoding("latin1").on("data", (text: string) => {
      answer += text;
      resolve();
    });
    socket
      .on("error", () => {})
      .once("close", () => {
        over = true;
        resolve();
      });
  });
  await once(socket, "connect");
  const authorization = rootKey === null ? "" : `Authorization: Bearer ${rootKey}\r\n`;
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${authorization}Content-Length: ${ANNOUNCED}\r\n\r\n`,
  );
  const chunk = Buffer.alloc(256 * 1024, 0x20);
  const sent = (async () => {
    for (let left = ANNOUNCED - 1; left > 0 && answer === "" && !over; left -= chunk.length) {
      const fits = socket.write(chunk.subarray(0, Math.min(left, chunk.length)));
      if (!fits) await Promise.race([once(socket, "drain"), done]);
    }
  })();
  await Promise.race([sent, done]);
  return answer.split("\r\n", 1)[0]!;
}

describe("bodies that are never completed", () => {
  for (const [who, rootKey, memoryMax] of [
    ["by callers without a root key", null, 384 * MIB],
    ["by callers with a wrong root key", "lk_root_wrong", 384 * MIB],
    ["by a tenant", ROOT_KEY, 450 * MIB],
  ] as const) {
    it(`${who} use a bounded part of the memory`, async (t) => {
      const server = await startMonitored({
        directory: makeFolder(t),
        settings: { REQUEST_TIMEOUT: "20s", BODIES_BYTES: "128m" },
      });
      const { apiId } = await server.ok("apis.createApi", { name: "innocent" });
      const { key } = await server.ok("keys.createKey", { apiId });
      const innocent = { operation: "keys.verifyKey", bodies: [{ key }] };
      const sockets: Socket[] = [];
      const closeAll = () => {
        for (const socket of sockets.splice(0)) socket.destroy();
      };
      const wave = () => {
        closeAll();
        return Promise.all(
          Array.from({ length: CONNECTIONS }, () => sendUnfinished(server, "/v2/apis.createApi", rootKey, sockets)),
        );
      };
      // The first one touches new memory and compiles code, once in the life of the process.
      await wave();
      closeAll();
      const measured = await measureBeside(server, innocent, async () => {
        const answers: string[] = [];
        const end = performance.now() + ATTACK_MS;
        do answers.push(...(await wave()));
        while (performance.now() < end);
        return answers;
      });
      // Calls with short bodies are answered in the meantime.
      await server.ok("apis.getApi", { apiId });
      closeAll();
      const statuses = [...new Set(measured.result)].sort();
      report(t, `${measured.result.length} bodies of 10 MiB, never completed, ${who}`, measured);
      t.diagnostic(`answers: ${JSON.stringify(statuses)}`);
      if (rootKey === null || rootKey !== ROOT_KEY) {
        assert.deepEqual(statuses, ["HTTP/1.1 401 Unauthorized"]);
      } else {
        assert(statuses.includes("HTTP/1.1 503 Service Unavailable"), String(statuses));
      }
      assertUnharmed(measured, { rssGrowthMax: memoryMax });

      // All memory is free again: a body of the largest size is read.
      await eventually("room for a long body", async () => {
        const { status } = await server.call("apis.createApi", { name: "x".repeat(9 * MIB) });
        return status === 400;
      });
    });
  }
});
