import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { WriteStream } from "node:tty";
import { systemClock } from "../../engine/src/clock/system.ts";
import { coloured } from "./colours.ts";
import { Columns, printData, tableOf } from "./render.ts";
import { fromNow } from "./times.ts";

const { isTTY, columns } = process.stdout;
const { NO_COLOR, FORCE_COLOR } = process.env;

/** Makes the standard output a terminal, as far as tables see it. */
function terminal(width: number): void {
  const { getColorDepth } = WriteStream.prototype;
  Object.assign(process.stdout, { isTTY: true, columns: width, getColorDepth });
  // Set by the runner of the tests.
  delete process.env.NO_COLOR;
  process.env.FORCE_COLOR = "1";
}

afterEach(() => {
  Object.assign(process.stdout, { isTTY, columns });
  for (const [name, value] of Object.entries({ NO_COLOR, FORCE_COLOR })) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

const entry = { a: "1", nested: { b: 1 }, limits: [{ c: 1 }], b: "2", c: 3, d: true, e: ["x", "y"], f: "6", g: "7" };

describe("the table of a list", () => {
  it("has the first six members with short values, and names the others", () => {
    const columns = Columns.ofList(undefined);
    assert.deepEqual(tableOf([entry], columns), ["a  b  c  d     e     f", "1  2  3  true  x, y  6"]);
    assert.deepEqual(columns.left, ["nested", "limits", "g"]);
  });

  it("has the columns that are wanted, on later pages too", () => {
    const columns = Columns.ofList(["g", "nested", "absent"]);
    assert.deepEqual(tableOf([entry], columns), ["g  nested   absent", '7  {"b":1}']);
    assert.deepEqual(tableOf([{ g: "8", absent: null }], columns), ["8           none"]);
  });

  it("leaves out the columns that do not fit on the terminal, and has a header in bold there", () => {
    terminal(12);
    const columns = Columns.ofList(undefined);
    assert.deepEqual(tableOf([entry], columns), ["\u001b[1ma  b  c\u001b[22m", "1  2  3"]);
    assert.deepEqual(columns.left, ["d", "e", "f", "nested", "limits", "g"]);
  });

  it("has times in words, and those of a series as dates", () => {
    const now = systemClock.now();
    const rows = [{ createdAt: now - 3 * 86_400_000, expires: now + 90_500_000, time: 1_700_000_000_000, at: 5 }];
    const [, line] = tableOf(rows, Columns.ofList(undefined));
    assert.equal(line, "3 days ago  in 2 days  2023-11-14T22:13:20.000Z  5");
  });
});

it("a record has times as dates, and in words if they say more", async (t) => {
  const log = t.mock.method(console, "log", () => {});
  const time = Date.UTC(2020, 0, 1);
  await printData({ start: time, nested: { end: time }, createdAt: time, at: 5 }, "table");
  assert.deepEqual(
    log.mock.calls.map(({ arguments: [line] }) => line.replace(/[\d,]+ days ago/, "long ago")),
    [
      "start       2020-01-01T00:00:00.000Z",
      "nested.end  2020-01-01T00:00:00.000Z",
      "createdAt   2020-01-01T00:00:00.000Z, long ago",
      "at          5",
    ],
  );
});

it("times are said from now", () => {
  assert.deepEqual(
    [0, 999, -999, 1_000, -61_000, 7_200_000].map((distance) => fromNow(10_000_000 + distance, 10_000_000)),
    ["now", "now", "now", "in 1 second", "1 minute ago", "in 2 hours"],
  );
});

it("NO_COLOR removes the colours of a terminal", () => {
  terminal(80);
  assert.equal(coloured("red", "a"), "\u001b[31ma\u001b[39m");
  delete process.env.FORCE_COLOR;
  process.env.NO_COLOR = "1";
  assert.equal(coloured("red", "a"), "a");
});
