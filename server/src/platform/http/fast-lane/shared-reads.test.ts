import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { it } from "node:test";
import { shareReads } from "./shared-reads.ts";

it("reads the TCP connections of a server into one memory, until a connection pauses", async () => {
  const received: { text: string; memory: Buffer }[] = [];
  const server = createServer((socket) => {
    socket.on("data", () => assert.fail("the chunk passed through the stream"));
    shareReads(socket, function (this: Socket, bytes, memory) {
      assert.equal(this, socket);
      received.push({ text: memory.toString("latin1", 0, bytes), memory });
      this.pause();
      this.write(`read ${received.length}`);
      return true;
    });
    sockets.push(socket);
  });
  const sockets: Socket[] = [];
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const peers = ["one", "two"].map((name) =>
    connect(port, "127.0.0.1")
      .setEncoding("latin1")
      .on("connect", function (this: Socket) {
        this.write(name);
      }),
  );
  await Promise.all(peers.map((peer) => once(peer, "data")));
  assert.deepEqual(received.map(({ text }) => text).sort(), ["one", "two"]);
  assert.equal(received[0]!.memory, received[1]!.memory);
  peers[0]!.write("three");
  for (const socket of sockets) socket.resume();
  await once(peers[0]!, "data");
  assert.equal(received[2]!.text, "three");
  for (const peer of peers) peer.destroy();
  server.close();
});

it("leaves a connection in memory as it is", () => {
  const connection = new PassThrough();
  shareReads(connection as unknown as Socket, () => assert.fail());
  assert.deepEqual(Object.getOwnPropertySymbols(connection), Object.getOwnPropertySymbols(new PassThrough()));
});
