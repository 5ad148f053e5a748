import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import type { Charge, ChargeResult } from "../../../../engine/src/limits/counters.ts";
import { Limiter } from "../../../../engine/src/limits/limiter.ts";
import { Principal } from "./principal.ts";
import { admit } from "./workspace-limit.ts";

const NOW = instantAt(1_768_478_400_000);
const principal = new Principal({ rootKeyId: "rk_1", workspaceId: "ws_1", grants: ["*"] }, 5);

function limiter(
  verdict: ChargeResult | Promise<ChargeResult>,
  policy: "closed" | "open",
  charged: Charge[] = [],
): Limiter {
  const charge = (charges: readonly Charge[]) => {
    charged.push(...charges);
    return verdict;
  };
  return new Limiter({ charge, peek: charge, adjust: () => [] }, policy, { now: () => NOW });
}

const denied: ChargeResult = {
  outcome: "decided",
  at: NOW,
  allowed: false,
  retryAfter: 1_001,
  limits: [{ allowed: false, remaining: 0, reset: NOW + 59_001, retryAfter: 1_001 }],
};

describe("admit", () => {
  it("counts one request of the workspace in a minute", () => {
    const charged: Charge[] = [];
    admit(principal, 5, limiter(denied, "closed", charged));
    assert.deepEqual(charged, [{ counter: "w\0ws_1", limit: 5, duration: 60_000, cost: 1 }]);
  });

  it("returns its state in whole seconds, rounded up, synchronously or not", async () => {
    for (const verdict of [denied, Promise.resolve(denied)]) {
      const { headers, rejection } = await admit(principal, 5, limiter(verdict, "closed"));
      assert.deepEqual(headers, { "RateLimit-Limit": "5", "RateLimit-Remaining": "0", "RateLimit-Reset": "60" });
      assert.equal(rejection!.code, "workspace_rate_limited");
      assert.deepEqual(rejection!.headers, {
        "retry-after": "2",
        "RateLimit-Policy": '"workspace";q=5;w=60;pk=:7pLoeRwTanyx:',
        RateLimit: '"workspace";r=0;t=2;pk=:7pLoeRwTanyx:',
      });
    }
  });

  it("allows calls while Redis cannot count", async () => {
    for (const outcome of ["outage", "full", "blocked"] as const) {
      for (const verdict of [{ outcome }, Promise.resolve({ outcome })]) {
        const { headers, rejection } = await admit(principal, 5, limiter(verdict, "closed"));
        assert.deepEqual({ headers, rejection }, { headers: {}, rejection: undefined });
        assert.equal((await admit(principal, 5, limiter(verdict, "open"))).rejection, undefined);
      }
    }
  });

  it("rethrows unexpected errors", async () => {
    await assert.rejects(async () => admit(principal, 5, limiter(Promise.reject(new TypeError()), "open")), TypeError);
  });

  it("counts nothing at a limit of 0", () => {
    const charged: Charge[] = [];
    const { headers, rejection } = admit(principal, 0, limiter(denied, "closed", charged)) as Awaited<
      ReturnType<typeof admit>
    >;
    assert.deepEqual([headers, charged], [{}, []]);
    assert.deepEqual(rejection!.headers, {
      "retry-after": "60",
      "RateLimit-Policy": '"workspace";q=0;w=60;pk=:7pLoeRwTanyx:',
      RateLimit: '"workspace";r=0;t=60;pk=:7pLoeRwTanyx:',
    });
  });
});
