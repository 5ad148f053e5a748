import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { cpuTimeOf } from "../../../server/test/cpu-time.ts";
import { findLoss, findRepeatedName } from "./json-text.ts";

const lossOf = (text: string) => findLoss(text, JSON.parse(text), true);

/** The value of a number literal: an integer coefficient and a power of ten, in lowest terms. */
function exactly(literal: string): { digits: bigint; exponent: number } {
  const [, sign = "", whole = "", fraction = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(
    literal,
  )!;
  let digits = BigInt(`${sign}${whole}${fraction}`);
  let exponent = Number(power) - fraction.length;
  while (digits !== 0n && digits % 10n === 0n) {
    digits /= 10n;
    exponent++;
  }
  return digits === 0n ? { digits, exponent: 0 } : { digits, exponent };
}

const value = fc.jsonValue({ maxDepth: 4 }).filter((json) => !JSON.stringify(json).includes("__proto__"));

describe("findLoss", () => {
  it("accepts the output of JSON.stringify, with any white space", () => {
    fc.assert(
      fc.property(value, fc.constantFrom("", " ", "\t", "\n"), (json, space) => {
        assert.equal(lossOf(JSON.stringify(json, null, space)), undefined);
      }),
    );
  });

  it("finds exactly the numbers that parsing changes", () => {
    const digits = (maxLength: number) =>
      fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 1, maxLength });
    const literal = fc
      .tuple(
        fc.constantFrom("", "-"),
        digits(22).map((text) => text.replace(/^0+(?=.)/, "")),
        fc.option(digits(22), { nil: undefined }),
        fc.option(fc.tuple(fc.constantFrom("e", "E+", "e-"), fc.nat({ max: 330 })), { nil: undefined }),
      )
      .map(
        ([sign, whole, fraction, power]) => `${sign}${whole}${fraction ? `.${fraction}` : ""}${power?.join("") ?? ""}`,
      );
    let lost = 0;
    fc.assert(
      fc.property(literal, fc.constantFrom("[", '{"a":', "[1, "), (number, before) => {
        const text = `${before}${number}${before[0] === "[" ? "]" : "}"}`;
        const read = Number(number);
        const isKept =
          Number.isFinite(read) &&
          JSON.stringify(exactly(number), withBigInts) === JSON.stringify(exactly(String(read)), withBigInts);
        const loss = lossOf(text);
        assert.equal(loss === undefined, isKept, `${text}: ${JSON.stringify(loss)}`);
        if (loss) {
          lost++;
          assert.equal(loss.position, before.length);
        }
      }),
      {
        numRuns: 5_000,
        examples: [
          ["-0", "["],
          ["0e999", "["],
          ["1e400", "["],
          ["9007199254740993", '{"a":'],
        ],
      },
    );
    assert(lost > 1_000, `${lost} lost`);
  });

  it("finds a duplicate name in an object in any spelling", () => {
    const escaped = (name: string) => name.replace(/./gu, (char) => (char.length === 1 ? unicode(char) : char));
    const unicode = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
    fc.assert(
      fc.property(
        fc.constantFrom("a", "a:b", "", "ä", ":", "name"),
        fc.array(value, { maxLength: 3 }),
        value,
        value,
        fc.boolean(),
        fc.constantFrom("", " ", "\n"),
        (name, between, one, other, isEscaped, space) => {
          const members = [
            `"${name}"${space}:${JSON.stringify(one)}`,
            ...between.map((json, i) => `"other${i}":${JSON.stringify(json)}`),
            `"${isEscaped ? escaped(name) : name}":${space}${JSON.stringify(other)}`,
          ];
          const object = `{${members.join(`${space},`)}}`;
          for (const text of [object, `[${object}]`, `{"meta":{"a":[1,${object}]}}`]) {
            assert.match(lossOf(text)?.message ?? "none", /the same property twice/, text);
          }
          const different = object.replace(`"${name}"`, '"first"');
          assert.equal(lossOf(different), undefined, different);
        },
      ),
    );
  });

  it("finds an unpaired surrogate and the name __proto__", () => {
    for (const text of ['["\\ud800"]', '{"a":"x\\uDFFFy"}', '{"\\ud83d":1}', '["\\ude00\\ud83d"]']) {
      assert.match(lossOf(text)!.message, /half of a surrogate pair/, text);
    }
    for (const text of ['{"__proto__":1}', '{"a":[{"\\u005f_proto__" : {}}]}']) {
      assert.match(lossOf(text)!.message, /__proto__/, text);
    }
    for (const text of ['["__proto__"]', '{"a":"\\ud83d\\ude00"}', '["\\\\ud800"]', '{"x__proto__":1}']) {
      assert.equal(lossOf(text), undefined, text);
    }
  });

  it("takes time in proportion to the length of the text", async () => {
    const texts = [
      `["${"\\\\".repeat(500_000)}"]`,
      `["${'\\"'.repeat(500_000)}"]`,
      `[1e-${"0".repeat(500_000)}]`,
      `[0.${"0".repeat(500_000)}1]`,
      `${"[".repeat(200_000)}${"]".repeat(200_000)}`,
      `{${Array.from({ length: 50_000 }, (_, i) => `"\\u0061${i}":${i}`).join(",")}}`,
    ];
    for (const text of texts) {
      const json = JSON.parse(text);
      const took = await cpuTimeOf(() => findLoss(text, json, true));
      assert(took < 1_000, `${text.slice(0, 20)}: ${took} ms`);
    }
  });
});

function withBigInts(_: string, member: unknown): unknown {
  return typeof member === "bigint" ? String(member) : member;
}

describe("findRepeatedName", () => {
  it("finds the second of two members, in any object, and nothing in the output of JSON.stringify", () => {
    const nested = fc.constantFrom("", '{"a":', '[{"\\u003a":":"},', '["\\\\",');
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.string(), nested, (json, name, before) => {
        const after = before === "" ? "" : before[0] === "{" ? "}" : "]";
        const [text, member] = [JSON.stringify(json), JSON.stringify(name)];
        const whole = `${before}${text}${after}`;
        assert.equal(findRepeatedName(whole, JSON.parse(whole)), undefined);
        const twice = `${before}{${member}:${text},${member}:${text}}${after}`;
        const position = before.length + member.length + text.length + 3;
        assert.deepEqual(findRepeatedName(twice, JSON.parse(twice)), { name, position });
      }),
    );
  });
});
