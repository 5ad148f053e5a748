import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProtocolError } from "./errors.ts";
import { COMPRESSION_ERROR } from "./frames.ts";
import { encodeField, HpackDecoder } from "./hpack.ts";

const limits = { bytesMax: 16_384, fieldsMax: 64 };

function decoded(decoder: HpackDecoder, hex: string): string[] | undefined {
  return decoder
    .decode(Buffer.from(hex.replaceAll(" ", ""), "hex"), limits)
    ?.map(({ name, value }) => `${name}: ${value}`);
}

describe("HPACK", () => {
  /** RFC 7541, appendices C.3, C.4 and C.6: requests and responses of one connection each. */
  const connections = {
    "requests as they are": [
      ["8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", ":authority: www.example.com"],
      ["8286 84be 5808 6e6f 2d63 6163 6865", "cache-control: no-cache"],
      ["8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", "custom-key: custom-value"],
    ],
    "requests in the code of Huffman": [
      ["8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", ":authority: www.example.com"],
      ["8286 84be 5886 a8eb 1064 9cbf", "cache-control: no-cache"],
      ["8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", "custom-key: custom-value"],
    ],
  } as const;
  for (const [name, blocks] of Object.entries(connections)) {
    it(`reads ${name}`, () => {
      const decoder = new HpackDecoder();
      for (const [i, [hex, last]] of blocks.entries()) {
        const fields = decoded(decoder, hex) ?? [];
        assert.equal(fields.at(-1), last);
        assert.equal(fields[0], ":method: GET");
        assert(fields.includes(":authority: www.example.com"), `block ${i}`);
      }
    });
  }

  it("forgets what does not fit into its table", () => {
    const decoder = new HpackDecoder();
    const add = (value: string) => Buffer.concat([Buffer.from([0x40]), encodeField("a", value).subarray(1)]);
    decoder.decode(Buffer.concat([add("1".repeat(2_000)), add("2".repeat(2_000))]), limits);
    assert.deepEqual(decoded(decoder, "bf")?.[0]?.slice(0, 4), "a: 1");
    decoder.decode(add("3"), limits);
    assert.throws(() => decoded(decoder, "c0"), { code: COMPRESSION_ERROR });
    // A table of size 0 has no entry, and another one can grow again.
    assert.throws(() => decoded(decoder, "20 be"), { code: COMPRESSION_ERROR });
    assert.deepEqual(decoded(decoder, "3f e1 1f 40 01 61 01 62 be"), ["a: b", "a: b"]);
    // An entry that is larger than the table empties it.
    decoder.decode(add("4".repeat(5_000)), limits);
    assert.throws(() => decoded(decoder, "be"), { code: COMPRESSION_ERROR });
  });

  it("rejects blocks that are none", () => {
    for (const hex of [
      "80",
      "be",
      "ff 80 80 80 80 80 01",
      "7f",
      "00 05 61",
      "00 01 61 85 ff",
      // The end of a text of Huffman: more than a byte of padding, padding with zeros, and the symbol of the end.
      "00 01 61 82 1f ff ff",
      "00 01 61 81 18",
      "00 01 61 84 ff ff ff ff",
      // A size after a field, and one that is larger than allowed.
      "82 20",
      "3f e2 1f",
    ]) {
      assert.throws(
        () => decoded(new HpackDecoder(), hex),
        (error) => error instanceof ProtocolError && error.code === COMPRESSION_ERROR,
        hex,
      );
    }
  });

  it("keeps no list that is longer than allowed, but its table", () => {
    const decoder = new HpackDecoder();
    const block = Buffer.concat([
      Buffer.from("400161", "hex"),
      encodeField("", "x".repeat(200)).subarray(2),
      Buffer.alloc(10_000, 0xbe),
    ]);
    assert.equal(decoder.decode(block, limits), undefined);
    assert.equal(decoder.decode(Buffer.alloc(65, 0x82), limits), undefined);
    assert.deepEqual(decoded(decoder, "be"), [`a: ${"x".repeat(200)}`]);
  });

  it("tells fields with other characters than allowed", () => {
    for (const [name, value, isValid] of [
      ["a", "b", true],
      ["a", "", true],
      ["a-b_c", "b\tc \xff", true],
      ["A", "b", false],
      ["", "b", false],
      ["a b", "b", false],
      ["a", " b", false],
      ["a", "b\t", false],
      ["a", "b\rc", false],
      ["a", "b\0", false],
      ["a", "b\x7f", false],
    ] as const) {
      const [field] = new HpackDecoder().decode(encodeField(name, value), limits) ?? [];
      assert.deepEqual([field?.name, field?.value, field?.isValid], [name, value, isValid]);
    }
  });

  it("writes fields of any length", () => {
    for (const length of [0, 126, 127, 128, 254, 255, 256, 10_000]) {
      const value = "v".repeat(length);
      const [field] = new HpackDecoder().decode(encodeField("x-a", value), limits) ?? [];
      assert.equal(field?.value, value);
    }
  });
});
