import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProtocolError } from "./errors.ts";
import { COMPRESSION_ERROR } from "./frames.ts";
import { encodeField, HpackDecoder } from "./hpack.ts";

const limits = { bytesMax: 16_384, fieldsMax: 64 };

function decoded(decoder: HpackDecoder, hex: string): string[] | undefined {
  return decoder
    .decode(Buffer.from(hex.replaceAll(/\s/g, ""), "hex"), limits)
    ?.map(({ name, value }) => `${name}: ${value}`);
}

describe("HPACK", () => {
  const first = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
  const second = [...first, "cache-control: no-cache"];
  const third = [
    ":method: GET",
    ":scheme: https",
    ":path: /index.html",
    ":authority: www.example.com",
    "custom-key: custom-value",
  ];
  const moved = (status: number) => [
    `:status: ${status}`,
    "cache-control: private",
    "date: Mon, 21 Oct 2013 20:13:21 GMT",
    "location: https://www.example.com",
  ];
  const found = [
    ":status: 200",
    "cache-control: private",
    "date: Mon, 21 Oct 2013 20:13:22 GMT",
    "location: https://www.example.com",
    "content-encoding: gzip",
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
  ];
  /** RFC 7541, appendices C.3 to C.6: requests and responses of one connection each. */
  const connections: Record<string, [hex: string, fields: string[]][]> = {
    "requests as they are": [
      ["8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", first],
      ["8286 84be 5808 6e6f 2d63 6163 6865", second],
      ["8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", third],
    ],
    "requests in the code of Huffman": [
      ["8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", first],
      ["8286 84be 5886 a8eb 1064 9cbf", second],
      ["8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", third],
    ],
    // They need a table of 256 bytes, which forgets fields. The first three bytes set its size.
    "responses as they are": [
      [
        `3fe101 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133
        3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
        moved(302),
      ],
      ["4803 3330 37c1 c0bf", moved(307)],
      [
        `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970
        7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61
        6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31`,
        found,
      ],
    ],
    "responses in the code of Huffman": [
      [
        `3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d
        29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
        moved(302),
      ],
      ["4883 640e ffc1 c0bf", moved(307)],
      [
        `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2
        e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
        found,
      ],
    ],
  };
  for (const [name, blocks] of Object.entries(connections)) {
    it(`reads ${name}`, () => {
      const decoder = new HpackDecoder();
      for (const [hex, fields] of blocks) assert.deepEqual(decoded(decoder, hex), fields);
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
