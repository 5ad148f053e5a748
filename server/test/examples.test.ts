/**
 * Runs every example of the documentation against the service. Examples contain placeholders: identifiers, key strings,
 * times. Before an example, the first examples of the operations that create something run in order. Comparing their
 * documented answers with the real ones gives the values of the placeholders.
 */
import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { operations } from "../src/service/operations.ts";
import { ExampleWorkspace, examplesOf } from "./example-workspace.ts";
import { TestServer } from "./harness.ts";

describe("examples", () => {
  const shared = new TestServer();
  before(() => shared.open());
  after(() => shared.close());

  for (const { name } of operations) {
    describe(name, () => {
      const examples = examplesOf(name);
      it("begins with a success", () => assert("output" in (examples[0] ?? {})));
      it("names each example once", () => {
        const summaries = examples.map(({ summary }) => summary);
        assert.deepEqual(summaries, [...new Set(summaries)]);
      });
      for (const example of examples) {
        it(example.summary, async (t) => {
          const workspace = await ExampleWorkspace.before(name, shared, t as TestContext);
          await workspace.perform(name, example);
        });
      }
    });
  }
});
