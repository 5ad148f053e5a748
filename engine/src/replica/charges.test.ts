import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Overloaded } from "../errors/overloaded.ts";
import { Charges } from "./charges.ts";
import type { ChargeAnswer, ChargeQuestion, LimitCall } from "./home.ts";

const call = (length: number): LimitCall => ({
  operation: "ratelimits.limit",
  entries: [{ namespace: "n", identifier: "x".repeat(length), limit: 1, duration: 1_000 }],
});

/** Charges of a home that answers when it is told to. */
function open() {
  const questions: { question: ChargeQuestion; answer(): void }[] = [];
  const home = {
    charge(question: ChargeQuestion) {
      const { promise, resolve } = Promise.withResolvers<ChargeAnswer>();
      const answer = () => resolve({ results: [], limits: (question.limits ?? []).map(() => ({ isElsewhere: true })) });
      questions.push({ question, answer });
      return promise;
    },
  };
  return { charges: new Charges(home, () => undefined), questions };
}

describe("charges", () => {
  it("that wait are bounded in number and in bytes, and begin again when home answers (rule 184)", async () => {
    for (const length of [1, 400_000]) {
      const { charges, questions } = open();
      const waiting: Promise<unknown>[] = [];
      const fill = () => {
        for (let i = 0; i < 20_000; i++) waiting.push(charges.charge(call(length)));
      };
      assert.throws(fill, Overloaded);
      assert.ok(waiting.length <= 10_000 && waiting.length * length <= 32 * 1024 * 1024, `${waiting.length}`);
      assert.ok(waiting.length >= 80);
      for (let answered = 0; answered < waiting.length; ) {
        await new Promise(setImmediate);
        for (const { question, answer } of questions.splice(0)) {
          answered += question.limits?.length ?? 0;
          answer();
        }
      }
      await Promise.all(waiting);
      const again = charges.charge(call(length));
      await new Promise(setImmediate);
      for (const { answer } of questions.splice(0)) answer();
      assert.deepEqual(await again, { isElsewhere: true });
    }
  });
});
