/** A client that opens all connections and keeps them, beside an innocent tenant at another address. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import { makeFolder, start } from "../process.ts";

const MAX = 200;
const CALLS = 100;

const attacks = {
  "sends nothing": "",
  "sends half of a request": "POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
  "sends a request and stays idle": "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n",
};

describe("a client that uses all connections and", () => {
  for (const [what, text] of Object.entries(attacks)) {
    it(`${what} does not keep others from calling`, async (t) => {
      const server = await start({ directory: makeFolder(t), settings: { CONNECTIONS_MAX: String(MAX) } });
      const { apiId } = await server.ok("apis.createApi", { name: "innocent" });
      const { key } = await server.ok("keys.createKey", { apiId });
      const { port } = new URL(server.address);
      const sockets: Socket[] = [];
      t.after(() => {
        for (const socket of sockets) socket.destroy();
      });
      let [rejected, ended] = [0, 0];
      const attack = async () => {
        const socket = connect({ port: Number(port), host: "127.0.0.1" });
        sockets.push(socket);
        socket.on("error", () => {}).once("close", () => ended++);
        socket.on("data", (data) => {
          if (data.includes("503 Service Unavailable")) rejected++;
        });
        await once(socket, "connect");
        socket.write(text);
      };
      for (let i = 0; i < MAX; i++) await attack();

      const statuses: Record<number, number> = {};
      for (let i = 0; i < CALLS; i++) {
        // The attack goes on: it replaces each connection that it loses.
        await attack();
        const status = await new Promise<number>((resolve, reject) =>
          request(
            `${server.address}/v2/keys.verifyKey`,
            {
              method: "POST",
              localAddress: "127.0.0.2",
              agent: false,
              headers: { "content-type": "application/json" },
            },
            (response) => response.resume().once("end", () => resolve(response.statusCode!)),
          )
            .once("error", reject)
            .end(JSON.stringify({ key })),
        );
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
      t.diagnostic(
        `${MAX} connections of ${MAX}: answers to the innocent tenant ${JSON.stringify(statuses)}; ` +
          `the attacker lost ${ended} connections and got ${rejected} answers 503`,
      );
      assert.deepEqual(statuses, { 200: CALLS });
    });
  }
});
