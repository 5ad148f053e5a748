import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { describe, it } from "node:test";
import { Connections } from "./connections.ts";

const BOUNDS = { timeout: 60_000, bytesMax: 1_000 };

/** Connections whose peers take nothing, each with so many bytes of output. */
function openConnections() {
  const connections = new Connections(100, () => {});
  const server: Server = createServer();
  server.removeAllListeners("connection");
  server.on("connection", () => {});
  connections.watch(server);
  return {
    connections,
    connect(writableLength: number) {
      const socket = Object.assign(new EventEmitter(), {
        writableLength,
        destroyed: false,
        destroy() {
          socket.destroyed = true;
          socket.emit("close");
        },
      });
      server.emit("connection", socket as unknown as Socket);
      return socket;
    },
  };
}

describe("a connection whose peer takes nothing", () => {
  it("is ended after a while", () => {
    const { connections, connect } = openConnections();
    const [idle, slow] = [connect(0), connect(10)];
    connections.dropSlow(0, BOUNDS);
    connections.dropSlow(60_000, BOUNDS);
    assert(!slow.destroyed);
    connections.dropSlow(60_001, BOUNDS);
    assert(slow.destroyed && !idle.destroyed);
  });

  it("is left alone when it has taken all in between", () => {
    const { connections, connect } = openConnections();
    const slow = connect(10);
    connections.dropSlow(0, BOUNDS);
    slow.writableLength = 0;
    connections.dropSlow(30_000, BOUNDS);
    slow.writableLength = 10;
    connections.dropSlow(60_001, BOUNDS);
    assert(!slow.destroyed);
  });

  it("is ended sooner when all together hold too much, those first that have held it for the longest", () => {
    const { connections, connect } = openConnections();
    const first = connect(500);
    connections.dropSlow(0, BOUNDS);
    const [second, prompt] = [connect(600), connect(600)];
    connections.dropSlow(500, BOUNDS);
    assert(!first.destroyed, "a peer has a second");
    connections.dropSlow(1_000, BOUNDS);
    assert(first.destroyed && !second.destroyed && !prompt.destroyed);
    connections.dropSlow(1_500, BOUNDS);
    assert(second.destroyed && !prompt.destroyed);
  });
});
