import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { describe, it } from "node:test";
import { Connections } from "./connections.ts";

const LIMITS = { timeout: 60_000, bytesMax: 1_000 };

/** Connections whose peers read nothing, each with a number of bytes of output. */
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

describe("a connection whose peer reads nothing", () => {
  it("is ended after the timeout", () => {
    const { connections, connect } = openConnections();
    const [idle, slow] = [connect(0), connect(10)];
    connections.dropSlow(0, LIMITS);
    connections.dropSlow(60_000, LIMITS);
    assert(!slow.destroyed);
    connections.dropSlow(60_001, LIMITS);
    assert(slow.destroyed && !idle.destroyed);
  });

  it("stays open when its peer has read everything in between", () => {
    const { connections, connect } = openConnections();
    const slow = connect(10);
    connections.dropSlow(0, LIMITS);
    slow.writableLength = 0;
    connections.dropSlow(30_000, LIMITS);
    slow.writableLength = 10;
    connections.dropSlow(60_001, LIMITS);
    assert(!slow.destroyed);
  });

  it("is ended sooner when all output takes too much memory, the longest waiting first", () => {
    const { connections, connect } = openConnections();
    const first = connect(500);
    connections.dropSlow(0, LIMITS);
    const [second, prompt] = [connect(600), connect(600)];
    connections.dropSlow(500, LIMITS);
    assert(!first.destroyed, "a peer has a second to read");
    connections.dropSlow(1_000, LIMITS);
    assert(first.destroyed && !second.destroyed && !prompt.destroyed);
    connections.dropSlow(1_500, LIMITS);
    assert(second.destroyed && !prompt.destroyed);
  });
});
