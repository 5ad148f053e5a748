import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { getHeapStatistics } from "node:v8";
import { collectGarbage } from "./collect-garbage.ts";

const MIB = 1024 * 1024;

describe("a collection of garbage", () => {
  it("gives memory back, of young and of old objects", () => {
    collectGarbage();
    const resident = () => getHeapStatistics().total_physical_size / MIB;
    const before = resident();
    let objects: object[] = [];
    while (objects.length < 500_000) objects.push({ number: objects.length });
    const full = resident();
    assert(full > before + 20, `${before} MiB, then ${full}`);
    objects = [];
    collectGarbage();
    assert(resident() < before + 5, `${before} MiB, then ${full}, then ${resident()}`);
  });
});
