import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { instantAt } from "../../engine/src/clock/clock.ts";
import { bodyOf, type Given } from "./body.ts";
import { declaredGroups } from "./declared.ts";
import { expandMembers } from "./operation-commands.ts";
import { UsageError } from "./output.ts";

const now = instantAt(1_768_478_400_000);
const flagsOf = (name: string) =>
  declaredGroups.flatMap(({ commands }) => commands).find(({ operation }) => operation === name)!.flags;
const body = (operation: string, given: Record<string, Given>, base?: unknown) =>
  bodyOf(flagsOf(operation), new Map(Object.entries(given)), now, base);

describe("the body that flags give", () => {
  const values: [operation: string, given: Record<string, Given>, body: unknown][] = [
    ["keys.updateKey", { name: "null" }, { name: null }],
    [
      "keys.updateKey",
      { "credits.remaining": "5", "credits.refill": "null" },
      { credits: { remaining: 5, refill: null } },
    ],
    ["keys.updateKey", { credits: "null", meta: "null" }, { credits: null, meta: null }],
    ["keys.createKey", { name: "null" }, { name: "null" }],
    ["keys.createKey", { recoverable: true }, { recoverable: true }],
    ["keys.createKey", { enabled: "false" }, { enabled: false }],
    ["keys.createKey", { expires: "+2d" }, { expires: now + 2 * 86_400_000 }],
    ["keys.createKey", { expires: "2027-01-31" }, { expires: Date.UTC(2027, 0, 31) }],
    ["keys.createKey", { permissions: ["a,b", "c"] }, { permissions: ["a", "b", "c"] }],
    ["keys.createKey", { permissions: ["[]"] }, { permissions: [] }],
    ["keys.createKey", { roles: ["a,b"] }, { roles: ["a,b"] }],
    [
      "webhooks.createWebhook",
      { eventTypes: ["key.created, key.deleted", "api.created"] },
      { eventTypes: ["key.created", "key.deleted", "api.created"] },
    ],
    ["webhooks.updateWebhook", { eventTypes: ["null"] }, { eventTypes: null }],
    ["apis.updateApi", { expiryNotices: ["30,7", "1"] }, { expiryNotices: [30, 7, 1] }],
    ["apis.updateApi", { expiryNotices: ["[30,7]"] }, { expiryNotices: [30, 7] }],
    ["keys.createKey", { meta: ["plan=pro", "a.b=1", 'zip="01"'] }, { meta: { plan: "pro", a: { b: 1 }, zip: "01" } }],
    ["keys.createKey", { meta: ['{"plan":"pro"}', "seats=5"] }, { meta: { plan: "pro", seats: 5 } }],
    [
      "keys.createKey",
      { ratelimits: ["name=r,limit=5,duration=60000,auto-apply=true", '{"name":"s"}'] },
      { ratelimits: [{ name: "r", limit: 5, duration: 60_000, autoApply: true }, { name: "s" }] },
    ],
    [
      "keys.createKey",
      { ratelimits: ["name=r,limit=5,duration=1m", '{"name":"s","duration":1}'] },
      {
        ratelimits: [
          { name: "r", limit: 5, duration: 60_000 },
          { name: "s", duration: 1 },
        ],
      },
    ],
    ["keys.migrateKeys", { keys: ["hash=a,expires=+2d"] }, { keys: [{ hash: "a", expires: now + 2 * 86_400_000 }] }],
    ["ratelimits.limit", { duration: "1h" }, { duration: 3_600_000 }],
    ["ratelimits.multiLimit", { "": ["namespace=n,limit=1"] }, [{ namespace: "n", limit: 1 }]],
  ];
  for (const [operation, given, expected] of values) {
    it(`${operation} ${JSON.stringify(given)}`, () => assert.deepEqual(body(operation, given), expected));
  }

  it("changes the body that is given as a whole", () => {
    const base = { apiId: "api_1", credits: { remaining: 1, refill: null } };
    assert.deepEqual(body("keys.createKey", { "credits.remaining": "2" }, base), {
      apiId: "api_1",
      credits: { remaining: 2, refill: null },
    });
    assert.equal(base.credits.remaining, 1);
  });

  it("has a member named __proto__ as a member", () => {
    const { meta } = body("keys.createKey", { meta: ["__proto__.polluted=1"] }) as { meta: object };
    assert.equal(JSON.stringify(meta), '{"__proto__":{"polluted":1}}');
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  });

  const wrong: [operation: string, given: Record<string, Given>, message: RegExp][] = [
    ["keys.createKey", { "credits.remaining": "many" }, /^--credits\.remaining many: give a whole number, or null\.$/],
    [
      "keys.createKey",
      { "credits.remaining": "9007199254740993" },
      /^--credits\.remaining 9007199254740993: give a whole/,
    ],
    ["apis.updateApi", { expiryNotices: ["30,soon"] }, /^--expiry-notices 30,soon: give whole numbers, or null\.$/],
    ["keys.createKey", { enabled: "yes" }, /^--enabled yes: give true or false\.$/],
    ["keys.createKey", { expires: "tomorrow" }, /^--expires tomorrow: give a date such as/],
    ["keys.createKey", { meta: ["plan"] }, /^--meta plan: give a JSON object, or name=value\.$/],
    ["ratelimits.limit", { duration: "1 hour" }, /^--duration 1 hour: give a duration such as/],
  ];
  for (const [operation, given, message] of wrong) {
    it(`is not made of ${JSON.stringify(given)}`, () =>
      assert.throws(
        () => body(operation, given),
        (error) => error instanceof UsageError && message.test(error.message),
      ));
  }
});

describe("flags of single members", () => {
  it("are values of the flag of their object", () => {
    const words = ["keys", "create-key"];
    assert.deepEqual(expandMembers([...words, "--meta.plan", "pro", "--meta.a.b=1", "--name", "--meta.x"]), [
      ...words,
      "--meta",
      "plan=pro",
      "--meta",
      "a.b=1",
      "--name",
      "--meta",
      "x",
    ]);
    assert.deepEqual(expandMembers(["apis", "create-api", "--meta.plan", "pro"]), [
      "apis",
      "create-api",
      "--meta.plan",
      "pro",
    ]);
  });
});
