/** What callers are told about mistakes that newcomers make. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { problems } from "../../src/platform/rpc/problems.ts";
import { operations } from "../../src/service/operations.ts";
import { TestServer } from "../harness.ts";

describe("a mistake", () => {
  const server = new TestServer();
  let apiId: string;
  before(async () => {
    await server.open();
    apiId = await server.createApi();
  });
  after(() => server.close());

  const errorsOf = async (name: string, body: object) =>
    (await server.rejected(name, body, "invalid_input")).errors!.map(({ location, message, fix }) => ({
      location,
      message,
      fix,
    }));
  const createKey = (members: object) => errorsOf("keys.createKey", { apiId, ...members });

  it("in a list names the entry, and keeps the location of the schema", async () => {
    const whole = { name: "requests", limit: 10, duration: 60_000 };
    assert.deepEqual(await createKey({ ratelimits: [whole, { name: "writes", limit: 5 }] }), [
      {
        location: "/properties/ratelimits/items/required",
        message: "missing property 'ratelimits[1].duration'",
        fix: "Add 'ratelimits[1].duration' to the request body.",
      },
    ]);
  });

  it("in the name of a property is answered with the nearest ones", async () => {
    for (const [unknown, known] of [
      ["exipres", "expires"],
      ["external_id", "externalId"],
      ["ratelimit", "ratelimits"],
    ] as const) {
      assert.deepEqual(await createKey({ [unknown]: 1 }), [
        {
          location: "/additionalProperties",
          message: `the body has a property '${unknown}' that is not known here`,
          fix: `Did you mean '${known}'? Otherwise remove '${unknown}'.`,
        },
      ]);
    }
    const [missing, misspelt] = await errorsOf("keys.createKey", { api_id: apiId });
    assert.equal(missing!.message, "missing property 'apiId'");
    assert.match(misspelt!.fix!, /^Did you mean 'apiId'\?/);
    const [nested] = await createKey({ credits: { remaining: 1, refil: null } });
    assert.match(nested!.fix!, /^Did you mean 'refill'\?/);
    const many = Array.from({ length: 50 }, (_, i) => [`expires${i}`, 1]);
    const suggested = (await createKey(Object.fromEntries(many))).filter(({ fix }) => fix!.startsWith("Did you mean"));
    assert.equal(suggested.length, 5);
    const [other] = await createKey({ color: "red" });
    assert.equal(other!.fix, "Remove 'color' or correct its spelling.");
  });

  it("in the name of a property of a long body is answered alike", async () => {
    const keys = Array.from({ length: 1_500 }, (_, i) => ({ hash: `${i}`.padStart(64, "0"), name: "a".repeat(60) }));
    const errors = await errorsOf("keys.migrateKeys", {
      migrationId: "mig",
      apiId,
      keys: [...keys, { hsah: "a", ratelimits: [{ name: "a", limit: 1, duration: 60 }] }],
    });
    assert.deepEqual(
      errors.map(({ message, fix }) => `${message}. ${fix}`),
      [
        "missing property 'keys[1500].hash'. Add 'keys[1500].hash' to the request body.",
        "keys[1500].ratelimits[0].duration must be at least 1000 milliseconds. " +
          "Send at least 1000 milliseconds. 60 seconds are 60000.",
        "keys[1500] has a property 'hsah' that is not known here. Did you mean 'hash'? Otherwise remove 'hsah'.",
      ],
    );
  });

  it("of a date instead of milliseconds is answered with the number", async () => {
    for (const [date, number] of [
      ["2030-01-01", 1_893_456_000_000],
      ["2030-01-01T12:30:00", 1_893_501_000_000],
      ["2030-01-01T12:30:00Z", 1_893_501_000_000],
      ["2030-01-01 12:30:00.250+01:00", 1_893_497_400_250],
    ] as const) {
      const [error, ...more] = await createKey({ expires: date });
      assert.deepEqual(more, []);
      assert.equal(error!.location, "/properties/expires/type");
      assert.equal(error!.message, "expires must be a number of milliseconds, not a string");
      assert.equal(error!.fix, `Send a Unix time in milliseconds: ${number}.`, date);
      await server.ok("keys.createKey", { apiId, expires: number });
    }
    for (const text of ["tomorrow", "2030-13-45", "x".repeat(10_000)]) {
      const [error] = await createKey({ expires: text });
      assert.equal(error!.fix, "Send a Unix time in milliseconds.", text.slice(0, 20));
    }
    const [seconds] = await createKey({ expires: 1_893_456_000 });
    assert.equal(seconds!.message, "expires is a time in seconds, must be in milliseconds");
    assert.equal(seconds!.fix, "Multiply it by 1000: 1893456000000.");
    // Fields that are changed or may be omitted have the unit too.
    const { keyId } = await server.ok("keys.createKey", { apiId });
    const [changed] = await errorsOf("keys.updateKey", { keyId, expires: "2030-01-01" });
    assert.equal(changed!.fix, "Send a Unix time in milliseconds: 1893456000000.");
    const [from] = await errorsOf("audit.listEvents", { start: "2030-01-01" });
    assert.equal(from!.fix, "Send a Unix time in milliseconds: 1893456000000.");
  });

  it("of another unit is answered with the unit", async () => {
    const limit = (duration: unknown) => createKey({ ratelimits: [{ name: "requests", limit: 10, duration }] });
    const texts = async (duration: unknown) => (await limit(duration)).map(({ message, fix }) => `${message}. ${fix}`);
    const at = "ratelimits[0].duration";
    const tooShort = `${at} must be at least 1000 milliseconds. Send at least 1000 milliseconds.`;
    assert.deepEqual(await texts(60), [`${tooShort} 60 seconds are 60000.`]);
    assert.deepEqual(await texts(0), [tooShort]);
    assert.deepEqual(await texts(-5), [tooShort]);
    const type = `${at} must be a number of milliseconds, not a string. Send`;
    assert.deepEqual(await texts("1m"), [`${type} a number of milliseconds: 60000.`]);
    assert.deepEqual(await texts("60000"), [`${type} 60000 without quotation marks.`]);
    assert.deepEqual(await texts("soon"), [`${type} a number of milliseconds.`]);
    const [verification] = await errorsOf("ratelimits.limit", {
      namespace: "a",
      identifier: "b",
      limit: 1,
      duration: 60,
    });
    assert.equal(verification!.message, "duration must be at least 1000 milliseconds");
  });

  it("of a byte order mark says so", async () => {
    for (const name of ["keys.verifyKey", "apis.createApi"]) {
      const { errors } = await server.rejected(name, undefined, "invalid_input", { raw: "\ufeff{}" });
      assert.deepEqual(errors, [
        {
          location: "requestBody",
          message: "the body begins with a byte order mark (BOM)",
          fix: "Send the JSON as UTF-8 without a byte order mark.",
        },
      ]);
    }
  });

  it("of a key of a customer as root key is answered like any unknown one; the page of the error says how root keys begin", async () => {
    const { key } = await server.createKey(apiId);
    const details = new Set<string>();
    for (const as of [key, `${key.slice(0, -1)}x`, `${server.rootKey}x`, "lk_root_unknown", "x"]) {
      details.add((await server.rejected("apis.listApis", {}, "authentication_failed", { as })).detail);
    }
    assert.deepEqual([...details], ["The provided root key is invalid. We could not find the requested key."]);
    assert(problems.authentication_failed.causes.some((cause) => cause.includes("begin with `lk_root_`")));
  });

  it("in the path of an operation is answered with the operation", async () => {
    const detailOf = async (method: string, path: string) => {
      const { problem, body } = await server.request(method, path);
      assert.equal(problem, "route_not_found", path);
      return body.error.detail as string;
    };
    const nothing = "There is nothing at this address. Operations are at POST /v2/<name>.";
    for (const path of [
      "/v2/keys.verifykey",
      "/v2/keys.verifyKey/",
      "/v2/keys.verfyKey",
      "/v2/keys/verifyKey",
      "/v1/keys.verifyKey",
      "/v2/v2/keys.verifyKey",
      "/api/v2/keys.verifyKey",
      "/keys.verifyKey?a=b",
      "/v2/key.verify_key",
    ]) {
      assert.equal(await detailOf("POST", path), `${nothing} Did you mean POST /v2/keys.verifyKey?`, path);
    }
    assert.equal(await detailOf("GET", "/v1/apis.getApi"), `${nothing} Did you mean POST /v2/apis.getApi?`);
    for (const { name } of operations) {
      assert.match(await detailOf("POST", `/v2/${name}/`), new RegExp(`Did you mean POST /v2/${name}\\?$`));
    }
    // Names nothing that the caller sent.
    for (const path of ["/v2/lk_root_secret", "/v2/secret.secret", `/v2/keys.${"a".repeat(10_000)}`, "/robots.txt"]) {
      assert.equal(await detailOf("POST", path), `${nothing} The reference is at /reference.`, path.slice(0, 30));
    }
    for (const path of ["/health", "/healthz"]) {
      assert.equal(await detailOf("GET", path), `${nothing} Health checks are at /health/live and /health/ready.`);
    }
  });
});
