import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { canonicalDescriptors, type DescriptorNode } from "./descriptor-node.ts";
import { compileDescriptors, type DescriptorEntry, DescriptorTree } from "./descriptor-tree.ts";

const entriesOf = (...pairs: [string, string][]): DescriptorEntry[] => pairs.map(([key, value]) => ({ key, value }));
const limit = (requests_per_unit: number) => ({ rate_limit: { requests_per_unit, unit: "minute" as const } });
const treeOf = async (...nodes: DescriptorNode[]) => new DescriptorTree(await compileDescriptors(nodes));

/** The same search, as the documentation says it. */
function searched(nodes: readonly DescriptorNode[], entries: readonly DescriptorEntry[]): DescriptorNode | undefined {
  const [{ key, value }, ...rest] = entries as [DescriptorEntry, ...DescriptorEntry[]];
  const same = nodes.filter((node) => node.key === key);
  const found =
    same.find((node) => node.value === value && value !== "" && !value.endsWith("*")) ??
    same.find((node) => node.value?.endsWith("*") && value.startsWith(node.value.slice(0, -1))) ??
    same.find((node) => !node.value);
  return found && rest.length > 0 ? searched(found.descriptors ?? [], rest) : found;
}

describe("a tree of descriptors", () => {
  it("matches a value, else a value with an asterisk, else a key without a value", async () => {
    const tree = await treeOf(
      { key: "path", ...limit(1) },
      { key: "path", value: "/a*", ...limit(2) },
      { key: "path", value: "/api", ...limit(3) },
      { key: "path", value: "/ab*", ...limit(4) },
      { key: "other", value: "*", ...limit(5) },
    );
    const found = (key: string, value: string) => tree.find(entriesOf([key, value]))?.requestsPerUnit;
    assert.deepEqual(
      ["/api", "/apis", "/ab", "/a", "/b", "", "*"].map((value) => found("path", value)),
      // "/a*" was written before "/ab*".
      [3, 2, 2, 2, 1, 1, 1],
    );
    assert.deepEqual([found("other", ""), found("other", "x"), found("pat", "h/api")], [5, 5, undefined]);
  });

  it("matches only at the level of all entries", async () => {
    const tree = await treeOf({
      key: "tenant",
      ...limit(1),
      descriptors: [{ key: "path", value: "/x", ...limit(2) }, { key: "none" }],
    });
    assert.equal(tree.find(entriesOf(["tenant", "a"]))?.requestsPerUnit, 1);
    assert.equal(tree.find(entriesOf(["tenant", "a"], ["path", "/x"]))?.requestsPerUnit, 2);
    for (const none of [
      entriesOf(["path", "/x"]),
      entriesOf(["tenant", "a"], ["path", "/y"]),
      entriesOf(["tenant", "a"], ["none", "x"]),
      entriesOf(["tenant", "a"], ["path", "/x"], ["more", "x"]),
      [],
    ]) {
      assert.equal(tree.find(none), undefined);
    }
  });

  it("has names, what they replace, and the values that are shared", async () => {
    const tree = await treeOf({
      key: "a",
      value: "x*",
      share_threshold: true,
      descriptors: [
        {
          key: "b",
          shadow_mode: true,
          rate_limit: { requests_per_unit: 7, unit: "week", name: "n", replaces: [{ name: "m" }, { name: "o" }] },
        },
        { key: "c", quota_mode: true, rate_limit: { unlimited: true, name: "m" } },
      ],
    });
    assert.deepEqual(tree.find(entriesOf(["a", "xyz"], ["b", "1"])), {
      isUnlimited: false,
      requestsPerUnit: 7,
      unit: 7,
      name: "n",
      replaces: ["m", "o"],
      isShadow: true,
      isQuota: false,
      shared: ["x*"],
    });
    const { isUnlimited, isQuota, name, replaces } = tree.find(entriesOf(["a", "x"], ["c", ""]))!;
    assert.deepEqual([isUnlimited, isQuota, name, replaces], [true, true, "m", []]);
  });

  it("finds what a search one by one finds", async () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "é", "\u{1f511}"), maxLength: 4 });
    const key = fc.constantFrom("k", "l", "kk");
    const value = fc.oneof(
      text,
      text.map((prefix) => `${prefix}*`),
      fc.constant(undefined),
    );
    const { nodes } = fc.letrec<{ nodes: DescriptorNode[] }>((tie) => ({
      nodes: fc.uniqueArray(
        fc.record({
          key,
          value,
          rate_limit: fc.option(
            fc.integer({ min: 0, max: 1e6 }).map((n) => limit(n).rate_limit),
            { nil: undefined },
          ),
          descriptors: fc.option(tie("nodes"), { nil: undefined, maxDepth: 2 }),
        }),
        { maxLength: 12, selector: (node) => `${node.key} ${node.value ?? ""}` },
      ),
    }));
    const entries = fc.array(
      fc.record({ key, value: fc.string({ unit: fc.constantFrom("a", "b", "é", "\u{1f511}", "*"), maxLength: 6 }) }),
      {
        minLength: 1,
        maxLength: 3,
      },
    );
    await fc.assert(
      fc.asyncProperty(nodes, fc.array(entries, { minLength: 1, maxLength: 30 }), async (written, asked) => {
        const tree = await treeOf(...written);
        for (const one of asked) {
          assert.equal(tree.find(one)?.requestsPerUnit, searched(written, one)?.rate_limit?.requests_per_unit);
        }
      }),
      { seed: 7, numRuns: 500 },
    );
  });

  it("has one canonical text", () => {
    const written: DescriptorNode[] = [
      {
        descriptors: [],
        shadow_mode: false,
        value: "",
        key: "a",
        rate_limit: { unit: "day", requests_per_unit: 1, name: "" },
      },
    ];
    assert.equal(
      JSON.stringify(canonicalDescriptors(written)),
      '[{"key":"a","rate_limit":{"requests_per_unit":1,"unit":"day"}}]',
    );
  });
});
