import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { readBody } from "./body.ts";
import { FairQueue } from "./fair-queue.ts";
import { parseLongBody } from "./long-body.ts";
import { Problem } from "./problems.ts";

const PATH = "/v2/test";
const schema = z.strictObject({
  name: z.string().min(3),
  count: z.int().default(1),
  keys: z.array(z.strictObject({ hash: z.string().min(3), size: z.int().default(7) })).min(1),
});
const open = z.strictObject({ meta: z.record(z.string(), z.unknown()) });

/** The result of reading: the input, or the errors. */
async function outcome(read: () => unknown): Promise<unknown> {
  try {
    return { input: await read() };
  } catch (error) {
    assert(error instanceof Problem, String(error));
    return { detail: error.message, errors: error.errors };
  }
}

function inOrder({ errors, ...more }: { errors?: { message: string }[] }) {
  return { ...more, errors: errors?.map(({ message }) => message).sort() };
}

const inChunks = (text: string) => outcome(() => parseLongBody(schema, text, PATH, "keys"));
const atOnce = (text: string) => outcome(() => readBody(schema, text, PATH, true));

describe("a long body", () => {
  it("gives the same result as parsing at once, for any list", async () => {
    const entry = fc.oneof(
      { weight: 8, arbitrary: fc.record({ hash: fc.string({ minLength: 3 }), size: fc.nat() }) },
      { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
    );
    const body = fc.record({ name: fc.string(), count: fc.nat(), keys: fc.array(entry, { maxLength: 30 }) });
    await fc.assert(
      fc.asyncProperty(body, fc.nat({ max: 4 }), fc.nat({ max: 3_000 }), async (value, space, filler) => {
        // Valid entries in front move the generated list into another chunk.
        const keys = [...Array.from({ length: filler }, () => ({ hash: "abc" })), ...value.keys];
        const text = JSON.stringify({ ...value, keys }, null, space);
        const [chunked, whole] = [await inChunks(text), await atOnce(text)] as { errors?: { message: string }[] }[];
        // If there are more errors than the answer lists, the two ways may list different ones first.
        if (whole!.errors?.length === 20) assert.equal(chunked!.errors!.length, 20);
        else assert.deepEqual(inOrder(chunked!), inOrder(whole!));
      }),
      { numRuns: 200 },
    );
  });

  it("begins in a turn of its own when a queue starts it", async () => {
    let turn = 0;
    const count = () => {
      turn++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    const queue = new FairQueue({ runningMax: 1, runningPerWorkspaceMax: 1, waitingPerWorkspaceMax: 20 });
    const text = JSON.stringify({ name: "abc", keys: [{ hash: "abc" }] });
    const read = () => queue.run("ws", () => parseLongBody(schema, text, PATH).then(() => turn));
    const turns = await Promise.all(Array.from({ length: 20 }, read));
    clearImmediate(counting);
    assert.equal(new Set(turns).size, 20);
  });

  it("rejects every text that the parser rejects", async () => {
    const valid = `{"name":"abc","keys":[${'{"hash":"abc"},'.repeat(1_500)}{"hash":"abc"}]}`;
    await fc.assert(
      fc.asyncProperty(
        fc.nat({ max: valid.length }),
        fc.nat({ max: 2 }),
        fc.constantFrom("", ",", "]", "}", "[", "{", '"', "1", ":", "\\", "]}", "],[", '"keys":[]'),
        async (at, length, put) => {
          const text = valid.slice(0, at) + put + valid.slice(at + length);
          let isJson = true;
          try {
            JSON.parse(text);
          } catch {
            isJson = false;
          }
          const chunked = (await inChunks(text)) as { input?: unknown };
          if (!isJson) assert.equal(chunked.input, undefined, `${at} ${length} ${put}`);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("gives the index of an invalid entry in the whole list, and stops at 20 errors", async () => {
    const keys = Array.from({ length: 5_000 }, (_, i) => ({ hash: i === 4_321 ? "" : "abc" }));
    const one = (await inChunks(JSON.stringify({ name: "abc", keys }))) as { errors: { message: string }[] };
    assert.deepEqual(
      one.errors.map(({ message }) => message.split(" ")[0]),
      ["keys[4321].hash"],
    );
    const all = (await inChunks(`{"name":"abc","keys":[${"0,".repeat(1_000_000)}0]}`)) as { errors: unknown[] };
    assert.equal(all.errors.length, 20);
  });

  it("finds the list by any spelling of its name, and rejects a second one", async () => {
    const keys = `[${'{"hash":"abc"},'.repeat(2_000)}{"hash":"abc"}]`;
    const spelled = (await inChunks(`{"name":"abc","k\\u0065ys":${keys}}`)) as { input: { keys: unknown[] } };
    assert.equal(spelled.input.keys.length, 2_001);
    const twice = (await inChunks(`{"name":"abc","keys":${keys},"keys":${keys}}`)) as { detail: string };
    assert.match(twice.detail, /names 'keys' a second time/);
  });

  it("limits members, values and depth before parsing", async () => {
    const members = Array.from({ length: 20_001 }, (_, i) => `"m${i}":0`).join(",");
    const cases: [string, RegExp][] = [
      [`{"meta":{${members}}}`, /more than 20000 members/],
      [`{"meta":{"a":[${"0,".repeat(200_001)}0]}}`, /more than 200000 values/],
      [`{"meta":{"a":${"[".repeat(501)}${"]".repeat(501)}}}`, /deeper than 500 levels/],
      [`{"name":"abc","keys":[{${members}}]}`, /more than 20000 members/],
    ];
    for (const [text, detail] of cases) {
      const { detail: actual } = (await outcome(() => parseLongBody(open, text, PATH, "keys"))) as { detail: string };
      assert.match(actual, detail);
    }
    // The contents of strings are not counted.
    const quoted = `{"meta":{"a":"${"[{:,".repeat(100_000)}"}}`;
    assert.deepEqual(await outcome(() => parseLongBody(open, quoted, PATH)), {
      input: { meta: { a: "[{:,".repeat(100_000) } },
    });
  });

  it("yields to other work on the event loop", async () => {
    let turns = 0;
    let reading = true;
    const count = () => {
      turns++;
      if (reading) setImmediate(count);
    };
    setImmediate(count);
    await inChunks(`{"name":"abc","keys":[${'{"hash":"abc"},'.repeat(100_000)}{"hash":"abc"}]}`);
    reading = false;
    assert(turns > 100, `${turns} turns`);
  });
});
