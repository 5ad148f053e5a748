import assert from "node:assert/strict";
import { isUtf8 } from "node:buffer";
import { describe, it } from "node:test";
import fc from "fast-check";
import { decode } from "./decode.ts";

async function textOf(bytes: Buffer, cuts: readonly number[]): Promise<string> {
  const ends = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  async function* chunks() {
    let begin = 0;
    for (const end of [...ends, bytes.length]) {
      yield bytes.subarray(begin, end);
      begin = end;
    }
  }
  let text = "";
  for await (const part of decode(chunks(), "f")) text += part;
  return text;
}

const cuts = fc.array(fc.nat(200), { maxLength: 8 });
const line = fc.string({ unit: "binary", maxLength: 20 });
const mark = (encoding: string) => Buffer.from({ utf8: "efbbbf", utf16le: "fffe", utf16be: "feff" }[encoding]!, "hex");

describe("the text of a file", () => {
  it("is the same in each encoding that is read, wherever its chunks are cut", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 6 }), cuts, async (lines, at) => {
        const text = lines.join("\n");
        const wide = Buffer.from(text, "utf16le");
        assert.equal(await textOf(Buffer.concat([mark("utf8"), Buffer.from(text)]), at), text);
        assert.equal(await textOf(Buffer.concat([mark("utf16le"), wide]), at), text);
        assert.equal(await textOf(Buffer.concat([mark("utf16be"), Buffer.from(wide).swap16()]), at), text);
        if (!text.startsWith("\ufeff")) assert.equal(await textOf(Buffer.from(text), at), text);
      }),
      { numRuns: 500 },
    );
  });

  it("in another encoding is refused with its line, wherever its chunks are cut", async () => {
    const bytes = fc
      .uint8Array({ minLength: 1, maxLength: 12 })
      .filter((array) => !isUtf8(array) && !array.includes(10));
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 6 }), bytes, line, cuts, async (lines, fault, rest, at) => {
        const before = lines.map((text) => `x${text.replaceAll("\n", "")}\n`).join("");
        const damaged = Buffer.concat([Buffer.from(`x${before}`), fault, Buffer.from(`\n${rest}`)]);
        await assert.rejects(textOf(damaged, at), {
          name: "CommandError",
          message: `f is not UTF-8: see line ${lines.length + 1}. Convert it, for example with iconv -f WINDOWS-1252 -t UTF-8.`,
        });
      }),
      { numRuns: 500 },
    );
  });

  it("that ends in half a character is refused", async () => {
    await assert.rejects(textOf(Buffer.from("c3", "hex"), []), { message: /^f is not UTF-8: see line 1\./ });
    await assert.rejects(textOf(Buffer.from("fffe61", "hex"), []), { message: /^f begins as UTF-16LE, but is not\./ });
  });
});
