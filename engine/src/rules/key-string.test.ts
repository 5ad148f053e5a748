import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { base58, formatDerivedKey, formatKey, hasDerivedChecksum, hasValidChecksum, prefixOf } from "./key-string.ts";

const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const prefixCharacters = [..."abcxyzABC019_-."];

const prefix = fc.option(fc.string({ unit: fc.constantFrom(...prefixCharacters), minLength: 1, maxLength: 16 }));
const random = fc.uint8Array({ minLength: 16, maxLength: 255 });
const key = fc.tuple(prefix, random).map(([prefix, random]) => formatKey(prefix, random).key);

/** A reference key whose parts were computed by other programs: Python's `zlib.crc32` and a division by 58. */
const reference = {
  prefix: "prod",
  random: Uint8Array.from({ length: 16 }, (_, at) => at),
  key: "prod_12drXXUifSrRnXLGbXg8E43mwHi",
};

describe("base58", () => {
  // The first two are draft-msporny-base58-03; the others are Bitcoin Core's base58_encode_decode.json.
  const vectors: [hex: string, text: string][] = [
    [Buffer.from("Hello World!").toString("hex"), "2NEpo7TZRRrLZSi2U"],
    ["0000287fb4cd", "11233QC4"],
    ["", ""],
    ["61", "2g"],
    ["626262", "a3gV"],
    ["636363", "aPEr"],
    ["73696d706c792061206c6f6e6720737472696e67", "2cFupjhnEsSn59qHXstmK2ffpLv2"],
    ["00eb15231dfceb60925886b67d065299925915aeb172c06647", "1NS17iag9jJgTHD1VXjvLCEnZuQ3rJDE9L"],
    ["516b6fcd0f", "ABnLTmg"],
    ["bf4f89001e670274dd", "3SEo3LWLoPntC"],
    ["572e4794", "3EFU7m"],
    ["ecac89cad93923c02321", "EJDM8drfXA6uyA"],
    ["10c8511e", "Rt5zm"],
    ["00000000000000000000", "1111111111"],
  ];

  for (const [hex, text] of vectors) {
    it(`writes ${hex || "nothing"} as ${text || "nothing"}`, () => assert.equal(base58(Buffer.from(hex, "hex")), text));
  }

  it("is the number in base 58 after the leading zero bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        let value = BigInt(`0x0${Buffer.from(bytes).toString("hex")}`);
        let text = "";
        for (; value > 0n; value /= 58n) text = digits[Number(value % 58n)] + text;
        const zeros = bytes.findIndex((byte) => byte !== 0);
        assert.equal(base58(bytes), "1".repeat(zeros === -1 ? bytes.length : zeros) + text);
      }),
    );
  });
});

describe("formatKey", () => {
  it("writes prefix, random text and checksum", () => {
    assert.deepEqual(formatKey(reference.prefix, reference.random), { key: reference.key, start: "prod_12dr" });
  });

  it("writes no underscore without a prefix", () => {
    const { key, start } = formatKey(null, reference.random);
    assert.equal(key.slice(0, -6), "12drXXUifSrRnXLGbXg8E");
    assert.equal(start, "12dr");
  });

  it("ends in six characters for every checksum", () => {
    fc.assert(
      fc.property(prefix, random, (prefix, random) => {
        const lead = prefix === null ? "" : `${prefix}_`;
        const { key, start } = formatKey(prefix, random);
        assert.equal(key.length, lead.length + base58(random).length + 6);
        assert.ok(key.startsWith(lead + base58(random)));
        assert.equal(start, key.slice(0, lead.length + 4));
      }),
    );
  });

  it("pads a small checksum with the digit zero", () => {
    // Found by search: the CRC-32 of this text is below 58^2.
    const random = Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x1f, 0xa7, 0xae]);
    const { key } = formatKey(null, random);
    assert.equal(key, "1111111111111Bdgy1111E2");
    assert.ok(hasValidChecksum(key));
  });
});

describe("hasValidChecksum", () => {
  it("accepts every formatted key", () => {
    fc.assert(fc.property(key, (key) => assert.ok(hasValidChecksum(key))));
  });

  it("detects each wrong character", () => {
    const anyCharacter = fc.oneof(
      fc.constantFrom(...digits, ...prefixCharacters),
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    );
    fc.assert(
      fc.property(key, fc.nat(), anyCharacter, (key, place, wrong) => {
        const at = place % key.length;
        fc.pre(key[at] !== wrong);
        assert.ok(!hasValidChecksum(key.slice(0, at) + wrong + key.slice(at + 1)));
      }),
      { numRuns: 2_000 },
    );
  });

  it("detects every wrong base58 character of one key", () => {
    for (let at = 0; at < reference.key.length; at++) {
      for (const wrong of digits) {
        const text = reference.key.slice(0, at) + wrong + reference.key.slice(at + 1);
        assert.equal(hasValidChecksum(text), text === reference.key, text);
      }
    }
  });

  it("detects swapped adjacent characters", () => {
    fc.assert(
      fc.property(key, fc.nat(), (key, place) => {
        const at = place % (key.length - 1);
        fc.pre(key[at] !== key[at + 1]);
        assert.ok(!hasValidChecksum(key.slice(0, at) + key[at + 1] + key[at] + key.slice(at + 2)));
      }),
      { numRuns: 2_000 },
    );
  });

  it("detects a missing or an additional character", () => {
    fc.assert(
      fc.property(key, (key) => {
        assert.ok(!hasValidChecksum(key.slice(0, -1)));
        assert.ok(!hasValidChecksum(key.slice(1)));
        assert.ok(!hasValidChecksum(`${key}1`));
      }),
    );
  });

  it("rejects the checksum of the empty text", () => {
    // The CRC-32 of the empty text is 0.
    assert.ok(!hasValidChecksum("111111"));
    for (const text of ["", "1", "1111", "_", "\ud800"]) assert.ok(!hasValidChecksum(text));
  });

  it("rejects every other text and never throws", () => {
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 600 }), (text) => assert.ok(!hasValidChecksum(text))));
    fc.assert(
      fc.property(fc.array(fc.nat(0xffff), { maxLength: 60 }), (units) => {
        assert.ok(!hasValidChecksum(String.fromCharCode(...units)));
      }),
    );
  });
});

describe("prefixOf", () => {
  const table: [start: string, prefix: string | null][] = [
    ["prod_12dr", "prod"],
    ["my_app_live_12dr", "my_app_live"],
    ["a__12dr", "a_"],
    ["__12dr", "_"],
    ["12dr", null],
    ["", null],
    ["_12dr", null],
  ];
  for (const [start, prefix] of table) {
    it(`finds ${prefix} in "${start}"`, () => assert.equal(prefixOf(start), prefix));
  }

  it("returns the prefix of every formatted key", () => {
    fc.assert(
      fc.property(prefix, random, (prefix, random) => assert.equal(prefixOf(formatKey(prefix, random).start), prefix)),
    );
  });
});

describe("the string of a derived key", () => {
  it("is told from that of an issued key by its checksum alone", () => {
    fc.assert(
      fc.property(prefix, random, (prefix, random) => {
        const [issued, derived] = [formatKey(prefix, random), formatDerivedKey(prefix, random)];
        assert.equal(derived.start, issued.start);
        assert.equal(derived.key.length, issued.key.length);
        assert.deepEqual([issued.key, derived.key].map(hasValidChecksum), [true, false]);
        assert.deepEqual([issued.key, derived.key].map(hasDerivedChecksum), [false, true]);
      }),
    );
  });
});
