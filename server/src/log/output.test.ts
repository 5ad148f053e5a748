import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LogOutput } from "./output.ts";

type Done = (error: NodeJS.ErrnoException | null, written: number, chunk: Buffer) => void;

/** An output whose writes end when the test says so. */
function open() {
  const started: { text: string; end(error?: string, written?: number): void }[] = [];
  const events: string[] = [];
  let written = "";
  const output = new LogOutput({
    fd: 1,
    onFailure: (code) => events.push(`failed: ${code}`),
    onDropped: (lines) => events.push(`dropped: ${lines}`),
    write: ((_fd: number, chunk: Buffer, _offset: number, _length: number, _position: null, done: Done) => {
      const text = chunk.toString();
      started.push({
        text,
        end(error, count = chunk.length) {
          if (error === undefined) written += chunk.subarray(0, count);
          done(error === undefined ? null : Object.assign(new Error(error), { code: error }), count, chunk);
        },
      });
    }) as never,
    writeSync: ((_fd: number, chunk: Buffer) => {
      written += chunk;
      return chunk.length;
    }) as never,
  });
  return { output, started, events, written: () => written };
}

describe("LogOutput", () => {
  it("writes lines in order, one chunk at a time, and the rest of a chunk before later lines", () => {
    const { output, started, written } = open();
    for (const line of ["a\n", "b\n", "c\n"]) output.write(line);
    assert.deepEqual(
      started.map(({ text }) => text),
      ["a\n"],
    );
    started[0]!.end(undefined, 1);
    assert.equal(started[1]!.text, "\nb\nc\n");
    started[1]!.end();
    assert.equal(written(), "a\nb\nc\n");
    assert.equal(started.length, 2);
  });

  it("drops lines beyond a bound while nobody reads, and says how many when somebody does", () => {
    const { output, started, events, written } = open();
    const line = `${"x".repeat(1_023)}\n`;
    for (let i = 0; i < 5_000; i++) output.write(line);
    assert.equal(started.length, 1);
    started[0]!.end();
    started[1]!.end();
    assert.equal(written().length, 1_024 * 1_024);
    assert.deepEqual(events, [`dropped: ${5_000 - 1_024}`]);
  });

  it("reports the first of several failures, and writes what waits with a later line", () => {
    const { output, started, events, written } = open();
    for (const line of ["a\n", "b\n"]) {
      output.write(line);
      started.at(-1)!.end("ENOSPC");
    }
    output.write("c\n");
    started.at(-1)!.end();
    assert.equal(written(), "a\nb\nc\n");
    output.write("d\n");
    started.at(-1)!.end("EIO");
    assert.deepEqual(events, ["failed: ENOSPC", "failed: EIO"]);
  });

  it("is written when the last chunk is", async () => {
    const { output, started } = open();
    await output.written();
    output.write("a\n");
    output.write("b\n");
    let isWritten = false;
    const ended = output.written().then(() => {
      isWritten = true;
    });
    started[0]!.end();
    await Promise.resolve();
    assert.equal(isWritten, false);
    started[1]!.end();
    await ended;
  });

  it("writes what waits at a sudden end, unless a write has not ended", () => {
    const { output, started, written } = open();
    output.write("a\n");
    output.end();
    assert.equal(written(), "");
    started[0]!.end("EAGAIN");
    output.end();
    assert.equal(written(), "a\n");
  });
});
