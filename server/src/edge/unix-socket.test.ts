import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { OperatorError } from "../log/operator-error.ts";
import { listenAt } from "./unix-socket.ts";

const folder = mkdtempSync(join(tmpdir(), "unix-socket-"));
after(() => rmSync(folder, { recursive: true }));

/** Makes a socket as a process leaves it that is killed. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}.open`);
  await once(server, "listening");
  renameSync(`${path}.open`, path);
  server.close();
  await once(server, "close");
}

/** Who accepts a connection to a path. */
async function accepting(path: string, accepted: readonly number[]): Promise<number | undefined> {
  const before = accepted.length;
  const connection = connect(path);
  await once(connection, "connect");
  connection.destroy();
  while (accepted.length === before) await new Promise(setImmediate);
  return accepted[before];
}

describe("the Unix socket of edges that start at once (rule 230)", () => {
  for (const isLeft of [true, false]) {
    it(`is that of one of them, ${isLeft ? "after another one was killed" : "at a new path"}`, async (t) => {
      for (let round = 0; round < 20; round++) {
        const path = join(folder, `${isLeft}.sock`);
        if (isLeft) await leaveSocket(path);
        const accepted: number[] = [];
        const starts = Array.from({ length: 8 }, async (_, i) => {
          // Others begin when these have found what is there.
          for (let turn = 0; turn < (i + round) % 4; turn++) await new Promise(setImmediate);
          return listenAt(path, (connection) => {
            accepted.push(i);
            connection.destroy();
          });
        });
        const ends = await Promise.allSettled(starts);
        const winners = ends.flatMap((end, i) => (end.status === "fulfilled" ? [{ i, socket: end.value }] : []));
        t.after(() => {
          for (const { socket } of winners) socket.close();
        });
        assert.equal(winners.length, 1);
        for (const end of ends) {
          if (end.status === "fulfilled") continue;
          assert(end.reason instanceof OperatorError);
          assert.match(end.reason.message, /another edge listens there/);
        }
        const [winner] = winners;
        assert.equal(await accepting(path, accepted), winner?.i);
        winner?.socket.close();
        winners.length = 0;
        // The next one can listen at once.
        const next = await listenAt(path, (connection) => {
          accepted.push(-1);
          connection.destroy();
        });
        assert.equal(await accepting(path, accepted), -1);
        next.close();
        assert.deepEqual(readdirSync(folder), []);
      }
    });
  }

  it("leaves nothing behind where it cannot listen", async () => {
    const path = join(folder, "file.sock");
    writeFileSync(path, "precious");
    await assert.rejects(
      listenAt(path, () => {}),
      /there is something else/,
    );
    assert.deepEqual(readdirSync(folder), ["file.sock"]);
    const absent = join(folder, "absent", "edge.sock");
    await assert.rejects(
      listenAt(absent, () => {}),
      /--socket .*edge\.sock: the folder .*absent does not exist/,
    );
    await assert.rejects(
      listenAt(join(path, "edge.sock"), () => {}),
      /--socket .*edge\.sock: cannot make .*edge\.sock\.lock \(/,
    );
    assert.deepEqual(readdirSync(folder), ["file.sock"]);
  });
});
