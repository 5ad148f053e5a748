/** Callers that send as much as they can on a few connections without waiting for answers, beside an innocent tenant. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { makeFolder } from "../process.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

const CONNECTIONS = 8;
const ATTACK_MS = 3_000;
/** More than a connection reads at once. */
const CHUNK_BYTES = 64 * 1024;

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const post = (operation: string, body: string) =>
  `POST /v2/${operation} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const postInChunks = (operation: string, count: number) =>
  `POST /v2/${operation} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\na\r\n".repeat(count)}0\r\n\r\n`;

const INPUTS = {
  "requests for nothing": get("/a"),
  "requests for the OpenAPI document": get("/openapi.json"),
  "calls without a root key": post("apis.createApi", "{}"),
  verifications: post("keys.verifyKey", '{"key":"a"}'),
  "calls whose bodies have chunks of one byte": postInChunks("apis.createApi", 10_000),
  "verifications whose bodies have chunks of one byte": postInChunks("keys.verifyKey", 10_000),
  "calls whose bodies look like ends of heads": post("apis.createApi", "\r\n".repeat(30_000)),
};

describe("callers that do not wait for answers", () => {
  for (const [what, request] of Object.entries(INPUTS)) {
    it(`leave room for others with ${what}`, async (t) => {
      const server = await startMonitored({ directory: makeFolder(t), settings: { REQUEST_TIMEOUT: "4s" } });
      const { port } = new URL(server.address);
      const { apiId } = await server.ok("apis.createApi", { name: "innocent" });
      const { key } = await server.ok("keys.createKey", { apiId });
      // The document is generated at the first request.
      await fetch(`${server.address}/openapi.json`);
      const chunk = request.repeat(Math.ceil(CHUNK_BYTES / request.length));
      const sockets: Socket[] = [];
      const close = () => {
        for (const socket of sockets) socket.destroy();
      };
      t.after(close);
      const measured = await measureBeside(server, { operation: "keys.verifyKey", bodies: [{ key }] }, async () => {
        for (let i = 0; i < CONNECTIONS; i++) {
          const socket = connect({ port: Number(port), host: "127.0.0.1" });
          sockets.push(socket);
          socket.on("error", () => {}).resume();
          await once(socket, "connect");
          const send = () => {
            while (!socket.destroyed && socket.write(chunk));
          };
          socket.on("drain", send);
          send();
        }
        await setTimeout(ATTACK_MS);
        close();
      });
      report(t, what, measured);
      assertUnharmed(measured);
    });
  }
});
