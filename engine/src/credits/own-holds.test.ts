import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { instantAt } from "../clock/clock.ts";
import type { OpenedHold, StoredHold } from "./batch.ts";
import { OwnHolds } from "./own-holds.ts";

const at = instantAt(1_768_478_400_000);

function open(id: string): OpenedHold {
  return {
    ...{ id, workspaceId: "ws", keyId: "key", apiId: "api", cost: 5, balances: [{ id: "bud_a", period: 2 }] },
    ...{ onExpiry: "release", createdAt: at, expiresAt: instantAt(at + 1), subject: null, limits: null },
    ...{ state: "open", charged: 0, lacks: [], settlement: null },
  };
}

/** Batches one after the other on a database that counts changes of holds. */
class Batches {
  readonly #own = new OwnHolds();
  #version = 1;

  /** Finds holds in a batch, which then opens and changes some. Returns the ids of those that were not read. */
  run(ids: readonly string[], opened: readonly OpenedHold[] = [], changed: readonly StoredHold[] = []): string[] {
    const { found, commit } = this.begin(ids, opened, changed);
    commit();
    return found;
  }

  begin(ids: readonly string[], opened: readonly OpenedHold[] = [], changed: readonly StoredHold[] = []) {
    const version = String(this.#version);
    const found = this.#own.find(
      ids.map((holdId) => ({ holdId })),
      { at, version },
    );
    this.#version += opened.length + changed.length;
    const after = String(this.#version);
    return { found: found.map(({ id }) => id), commit: () => this.#own.update({ opened, changed }, version, after) };
  }

  changeElsewhere(): void {
    this.#version++;
  }

  fail(): void {
    this.#own.forget();
  }
}

describe("the open holds that a ledger made", () => {
  it("are known until they end, as they were changed last", () => {
    const batches = new Batches();
    const [one, two] = [open("one"), open("two")];
    assert.deepEqual(batches.run(["one"], [one, two]), []);
    assert.deepEqual(batches.run(["two", "three", "one"]), ["two", "one"]);
    batches.run(
      ["one", "two"],
      [],
      [
        { ...one, state: "settled" },
        { ...two, expiresAt: instantAt(at + 9) },
      ],
    );
    assert.deepEqual(batches.run(["one", "two"]), ["two"]);
  });

  it("are read after anything else may have changed them", () => {
    for (const change of ["changeElsewhere", "fail"] as const) {
      const batches = new Batches();
      batches.run([], [open("one")]);
      batches[change]();
      assert.deepEqual(batches.run(["one"], [open("two")]), []);
      assert.deepEqual(batches.run(["one", "two"]), ["two"]);
    }
  });

  it("are read if a batch has begun before the answer of the one that made them", () => {
    const batches = new Batches();
    const first = batches.begin([], [open("one")]);
    const second = batches.begin(["one"]);
    first.commit();
    second.commit();
    assert.deepEqual(second.found, []);
    assert.deepEqual(batches.run(["one"]), []);
  });

  it("are always read where the database says nothing about them", () => {
    const own = new OwnHolds();
    own.find([], undefined);
    own.update({ opened: [open("one")], changed: [] }, undefined, undefined);
    assert.deepEqual(own.find([{ holdId: "one" }], undefined), []);
    assert.deepEqual(own.find([{ holdId: "one" }], { at, version: "1" }), []);
  });

  it("are at most 10,000, the last ones", () => {
    const batches = new Batches();
    const holds = Array.from({ length: 10_002 }, (_, i) => open(`hold_${i}`));
    batches.run([], holds.slice(0, 9_999));
    batches.run([], holds.slice(9_999));
    const found = batches.run(holds.map(({ id }) => id));
    assert.deepEqual([found.length, found[0]], [10_000, "hold_2"]);
  });
});
