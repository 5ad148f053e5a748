/** A proxy between an edge and its service that answers 200 with something else (rule 229). */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { eventually, makeFolder, type Server, start, startEdge } from "../process.ts";
import { HostileHome } from "./hostile-home.ts";

const undo: (() => void | Promise<void>)[] = [];
let home: Server;
let hostile: HostileHome;
let edge: Server;
let caller: string;
let apiId: string;
/** Home charges its calls, or leases its limit. */
let limitedKey: string;
/** Home charges all of its calls. */
let paidKey: string;

before(async () => {
  const directory = makeFolder({ after: (task) => void undo.push(task) });
  home = await start({ directory });
  hostile = await HostileHome.open(home);
  const permissions = ["replicas.*.open", "ratelimits.*.limit"];
  const { key } = await home.ok("rootKeys.createRootKey", { name: "edge", permissions });
  ({ apiId } = await home.ok("apis.createApi", { name: "images" }));
  await home.ok("ratelimits.limit", entry);
  const ofCaller = ["ratelimits.*.limit", "apis.*.verify_key"];
  ({ key: caller } = await home.ok("rootKeys.createRootKey", { name: "caller", permissions: ofCaller }));
  const ratelimits = [{ name: "requests", limit: 1_000_000, duration: 3_600_000, autoApply: true }];
  ({ key: limitedKey } = await home.ok("keys.createKey", { apiId, ratelimits }));
  ({ key: paidKey } = await home.ok("keys.createKey", { apiId, credits: { remaining: 1_000_000 } }));
  edge = await startEdge(hostile, key, { directory, args: ["--stale", "1h"] });
});
after(async () => {
  hostile.close();
  for (const task of undo) await task();
});

const newKey = async (): Promise<string> => (await home.ok("keys.createKey", { apiId })).key;
const entry = { namespace: "emails", identifier: "a", limit: 1_000_000, duration: 60_000 };

/** Damages the answers to one operation while calls are made. */
async function whileDamaged<T>(
  operation: string,
  damage: (answer: string) => string,
  calls: () => Promise<T>,
): Promise<T> {
  let isDamaged = false;
  hostile.damage = (asked, answer) => {
    if (asked !== operation) return answer;
    isDamaged = true;
    return damage(answer);
  };
  try {
    return await calls();
  } finally {
    hostile.damage = (_, answer) => answer;
    assert(isDamaged, `${operation} was asked`);
  }
}

const bodies = [
  "<html>Please sign in</html>",
  "",
  "null",
  "[]",
  "{}",
  "200",
  '{"data":null}',
  '{"data":[]}',
  '{"data":{}}',
  '{"data":{"keys":null,"rootKeys":null,"namespaces":null,"results":null,"limits":null,"leases":null}}',
  '{"data":{"keys":[],"rootKeys":[],"namespaces":[],"results":[],"limits":[],"leases":[]}}',
  '{"data":{"keys":[null,null],"rootKeys":[null,null],"namespaces":[null,null],"results":[null,null],"limits":[null]}}',
  '{"data":{"keys":[{}],"rootKeys":[{}],"namespaces":[{}],"results":[{}],"limits":[{}],"leases":[{}]}}',
  '{"data":{"keys":[7],"rootKeys":["a"],"namespaces":[true],"results":[[]],"limits":[1],"leases":[1]}}',
  '{"data":{"keys":[{"keyId":"key_1"}],"rootKeys":[],"results":[{"data":{"valid":true}}],"limits":[{"data":{}}]}}',
  '{"data":{"keys":[],"rootKeys":[],"results":[{"data":{"valid":true,"code":"NOT_FOUND"}}],"limits":[]}}',
  '{"data":{"keys":[],"rootKeys":[],"results":[{"problem":{"code":"constructor"}}],"limits":[{"problem":null}]}}',
  '{"data":{"keys":[],"rootKeys":[],"results":[{"problem":{"code":"constructor","type":"a","status":503,"detail":"a"}}],"limits":[]}}',
];

describe("an answer to an edge that is none of its operation (rule 229)", () => {
  it("to a question about a key is an outage of home: 503, never a decision", async () => {
    for (const body of bodies) {
      const key = await newKey();
      const damaged = () => edge.call("keys.verifyKey", { key }, null);
      assert.equal((await whileDamaged("replica.resolveKeys", () => body, damaged)).status, 503, body);
      const namespace = { ...entry, namespace: `other ${body}` };
      const limit = () => edge.call("ratelimits.limit", namespace, caller);
      assert.equal((await whileDamaged("replica.resolveKeys", () => body, limit)).status, 503, body);
      assert.equal((await edge.ok("keys.verifyKey", { key }, null)).code, "VALID");
    }
    assert.match(
      edge.output,
      /"operation":"replica\.resolveKeys".*Home answered replica\.resolveKeys with 200: no JSON, but/,
    );
  });

  it("to a question about root keys refuses nobody", async () => {
    for (const body of bodies) {
      const { key } = await home.ok("rootKeys.createRootKey", { name: "one", permissions: ["ratelimits.*.limit"] });
      const limit = () => edge.call("ratelimits.limit", entry, key);
      assert.equal((await whileDamaged("replica.resolveKeys", () => body, limit)).status, 503, body);
      assert.equal((await limit()).status, 200);
    }
  });

  it("to a charge is an outage of home for each of its calls", async () => {
    await edge.ok("keys.verifyKey", { key: paidKey }, null);
    await edge.ok("ratelimits.limit", entry, caller);
    const calls = () =>
      Promise.all([
        edge.call("keys.verifyKey", { key: paidKey }, null),
        edge.call("ratelimits.limit", entry, caller),
        edge.call("ratelimits.multiLimit", [entry, entry], caller),
      ]);
    for (const body of bodies) {
      const answers = await whileDamaged("replica.charge", () => body, calls);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [503, 503, 503],
        body,
      );
    }
    assert.deepEqual(
      (await calls()).map(({ status }) => status),
      [200, 200, 200],
    );
  });

  it("to a call that is passed on is an outage of home, also for a proxy that asks whether it may pass a request", async () => {
    for (const body of bodies) {
      hostile.answer = (_, response) => response.end(body);
      const headers = { "content-type": "application/json", "idempotency-key": "a" };
      const request = { method: "POST", headers, body: JSON.stringify({ key: paidKey }) };
      assert.equal((await fetch(`${edge.address}/v2/keys.verifyKey`, request)).status, 503, body);
      const key = await newKey();
      const elsewhere = () =>
        fetch(`${edge.address}/auth/verify?api=${apiId}`, { headers: { authorization: `Bearer ${key}` } });
      const onlyHome = () => '{"data":{"keys":[{"isElsewhere":true}],"rootKeys":[]}}';
      assert.equal((await whileDamaged("replica.resolveKeys", onlyHome, elsewhere)).status, 503, body);
    }
  });

  it("about changes, leases and counts delays nothing, and is used for nothing", async () => {
    for (const operation of ["replica.listChanges", "replica.lease", "replica.report"]) {
      for (const body of ["<html>", "{}", '{"data":{}}']) {
        const key = await newKey();
        await edge.ok("keys.verifyKey", { key }, null);
        const isAsked = { so: false };
        const damage = () => {
          isAsked.so = true;
          return body;
        };
        await whileDamaged(operation, damage, async () => {
          await eventually(`the edge to ask ${operation}`, async () => {
            for (let i = 0; i < 50; i++) await edge.ok("keys.verifyKey", { key: limitedKey }, null);
            return isAsked.so;
          });
          assert.equal((await edge.ok("keys.verifyKey", { key }, null)).code, "VALID");
        });
      }
      await eventually(
        "the edge to be ready",
        async () => (await fetch(`${edge.address}/health/ready`)).status === 200,
      );
    }
  });

  it("is never an internal error, nor a decision of its own, whatever JSON is in whatever place of it", async () => {
    const damages = fc.record({ place: fc.nat(), other: fc.jsonValue({ maxDepth: 2 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("replica.resolveKeys", "replica.charge"),
        damages,
        async (operation, { place, other }) => {
          const key = operation === "replica.charge" ? paidKey : await newKey();
          const damage = (answer: string) => damagedAt(answer, place, other);
          const { status, body } = await whileDamaged(operation, damage, () =>
            edge.call("keys.verifyKey", { key }, null),
          );
          assert([200, 503].includes(status), `${status} ${JSON.stringify(body)}`);
          if (status === 200) assert.equal(typeof body.data.valid, "boolean");
        },
      ),
      { numRuns: 150 },
    );
  });
});

/** An answer with another value in one place of it. */
function damagedAt(answer: string, place: number, other: unknown): string {
  let places = 0;
  JSON.parse(answer, (_, value) => {
    places++;
    return value;
  });
  let left = place % places;
  const damaged = JSON.parse(answer, (_, value) => (left-- === 0 ? other : value));
  return JSON.stringify(damaged);
}
