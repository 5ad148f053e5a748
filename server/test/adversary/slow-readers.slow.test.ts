/** Callers that request much and read nothing, beside an innocent tenant. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import { eventually, makeFolder } from "../process.ts";
import { assertUnharmed, measureBeside, report, startMonitored } from "./innocent-tenant.ts";

const CONNECTIONS = 200;
const MIB = 1024 * 1024;

describe("clients that read nothing", () => {
  it("use a bounded part of the memory for a bounded time", async (t) => {
    const server = await startMonitored({
      directory: makeFolder(t),
      settings: { REQUEST_TIMEOUT: "4s", BODIES_BYTES: "256m" },
    });
    const { port } = new URL(server.address);
    const { apiId } = await server.ok("apis.createApi", { name: "innocent" });
    const { key } = await server.ok("keys.createKey", { apiId });
    // The document is generated at the first request.
    assert.equal((await fetch(`${server.address}/openapi.json`)).status, 200);
    const sockets: Socket[] = [];
    const measured = await measureBeside(server, { operation: "keys.verifyKey", bodies: [{ key }] }, async () => {
      let ended = 0;
      for (let i = 0; i < CONNECTIONS; i++) {
        const socket = connect({ port: Number(port), host: "127.0.0.1" });
        sockets.push(socket);
        socket.on("error", () => {}).once("close", () => ended++);
        await once(socket, "connect");
        socket.pause();
        // More than the buffers of a connection hold.
        socket.write("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20));
      }
      // The service closes the connection; a paused socket notices that only when it writes.
      await eventually("the service to close the connections", () => {
        for (const socket of sockets) if (!socket.destroyed) socket.write("\r\n");
        return ended === CONNECTIONS;
      });
    });
    report(t, `${CONNECTIONS} clients that read nothing`, measured);
    assertUnharmed(measured, { rssGrowthMax: 192 * MIB });
  });
});
