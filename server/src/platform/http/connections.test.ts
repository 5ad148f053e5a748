import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { describe, it } from "node:test";
import { Connections } from "./connections.ts";

const LIMITS = { timeout: 60_000, bytesMax: 1_000 };

/** Simulated connections, each with a number of bytes of output. */
function openConnections({ max = 100 } = {}) {
  const rejected: Socket[] = [];
  const connections = new Connections(max, (socket) => void rejected.push(socket));
  const server: Server = createServer();
  server.removeAllListeners("connection");
  server.on("connection", () => {});
  connections.watch(server);
  return {
    connections,
    rejected: rejected as unknown[],
    connect(writableLength: number, remoteAddress = "192.0.2.1") {
      const socket = Object.assign(new EventEmitter(), {
        writableLength,
        bytesRead: 0,
        remoteAddress,
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

describe("a connection beyond the maximum", () => {
  /** A request on the connection: incomplete, complete, or answered. */
  const request = (connections: Connections, socket: unknown, { complete = true, writableEnded = false } = {}) =>
    connections.record({
      req: { socket, complete },
      writableEnded,
      writableNeedDrain: false,
    } as unknown as ServerResponse);

  it("takes the place of the oldest unused one of the address that has the most", () => {
    const { connections, connect, rejected } = openConnections({ max: 5 });
    const [busy, answered, silent, incomplete] = Array.from({ length: 4 }, () => connect(0));
    const other = connect(0, "192.0.2.2");
    request(connections, busy);
    request(connections, answered, { writableEnded: true });
    request(connections, incomplete, { complete: false });

    const first = connect(0, "192.0.2.3");
    assert.deepEqual(
      [busy, answered, silent, incomplete].map((socket) => socket?.destroyed),
      [false, true, false, false],
    );
    connect(0, "192.0.2.4");
    assert(silent?.destroyed && !incomplete?.destroyed);
    // Of two connections, the address keeps both against another one with one.
    const last = connect(0, "192.0.2.4");
    assert(rejected.includes(last));
    assert.deepEqual(
      [busy, incomplete, other, first].map((socket) => socket?.destroyed),
      [false, false, false, false],
    );
  });

  it("is rejected when its own address has the most, or all others are in use", () => {
    const { connections, connect, rejected } = openConnections({ max: 3 });
    const sockets = [connect(0), connect(0), connect(0)];
    assert(rejected.includes(connect(0)));
    for (const socket of sockets) request(connections, socket);
    assert(rejected.includes(connect(0, "192.0.2.2")));
    assert(sockets.every(({ destroyed }) => !destroyed));
  });

  it("takes the place of an idle one of its own address when that has the most", () => {
    const { connections, connect, rejected } = openConnections({ max: 5 });
    const [answering, reading, used, idle, later] = [0, 1, 0, 0, 0].map((bytes) => connect(bytes));
    request(connections, answering);
    for (const at of [0, 1_000, 4_999]) {
      connections.dropSlow(at, LIMITS);
      assert(rejected.includes(connect(0)), "none is idle for 5 s");
    }
    assert(used && later);
    used.bytesRead += 100;
    connections.dropSlow(5_000, LIMITS);
    // It sends a request after the check.
    later.bytesRead += 100;
    const newcomer = connect(0);
    assert(!rejected.includes(newcomer));
    assert.deepEqual(
      [answering, reading, used, idle, later, newcomer].map((socket) => socket?.destroyed),
      [false, false, false, true, false, false],
    );
    assert(rejected.includes(connect(0)));
    connections.dropSlow(10_000, LIMITS);
    connect(0);
    assert(used.destroyed && !later.destroyed && !answering?.destroyed);
  });

  it("counts the connections of a network of IPv6 together", () => {
    const { connect, rejected } = openConnections({ max: 10 });
    for (let i = 0; i < 10; i++) connect(0, `2001:db8::${i + 1}`);
    assert(rejected.includes(connect(0, "2001:db8::ffff")));
    const other = connect(0, "2001:db9::1");
    assert(!rejected.includes(other));
  });
});
