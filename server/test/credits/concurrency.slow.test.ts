import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeFolder, type Server, start } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";

const CALLS = 1_000;
const CREDITS = 100;
const SIBLING_CONNECTIONS = 256;
const PAYING_CALLERS = 16;
const IDENTITY_LIMIT = 400;
/** The longest duration, so that no window ends during a test. */
const YEAR = 366 * 86_400_000;

interface Ending {
  after(undo: () => void | Promise<void>): void;
}

async function startNodes(t: Ending, count: number): Promise<Server[]> {
  const database = await freshDatabase();
  t.after(() => database.drop());
  const settings = { DATABASE_URL: database.url, REDIS_URL: await sharedRedis() };
  const nodes: Server[] = [];
  // The first one creates the schema, the root key and the workspace.
  for (let i = 0; i < count; i++) nodes.push(await start({ directory: makeFolder(t), settings }));
  return nodes;
}

describe(`${CALLS} simultaneous verifications of one key with ${CREDITS} credits`, () => {
  async function grantExactly(nodes: readonly Server[]): Promise<void> {
    const [node] = nodes as [Server];
    const { apiId } = await node.ok("apis.createApi", { name: "concurrency" });
    const { keyId, key } = await node.ok("keys.createKey", { apiId, credits: { remaining: CREDITS } });
    const answers = await Promise.all(
      Array.from({ length: CALLS }, (_, i) => nodes[i % nodes.length]!.ok("keys.verifyKey", { key })),
    );
    const balances = answers.filter(({ code }) => code === "VALID").map(({ credits }) => credits as number);
    // Each granted call returned a different balance.
    assert.deepEqual(
      balances.toSorted((a, b) => b - a),
      Array.from({ length: CREDITS }, (_, i) => CREDITS - 1 - i),
    );
    const others = answers.filter(({ code }) => code !== "VALID");
    for (const { code, credits } of others) assert.deepEqual([code, credits], ["USAGE_EXCEEDED", 0]);
    assert.deepEqual((await node.ok("keys.getKey", { keyId })).credits, { remaining: 0 });
    await Promise.all(nodes.map((one) => one.kill("SIGTERM")));
  }

  it(`are granted exactly ${CREDITS} times on sqlite`, async (t) => {
    await grantExactly([await start({ directory: makeFolder(t) })]);
  });

  it(`are granted exactly ${CREDITS} times on postgres`, async (t) => {
    await grantExactly(await startNodes(t, 1));
  });

  it(`are granted exactly ${CREDITS} times on postgres with three processes`, async (t) => {
    await grantExactly(await startNodes(t, 3));
  });
});

describe(`a key without credits under ${SIBLING_CONNECTIONS} connections, beside a key with credits of the same identity`, () => {
  async function assertLimitUnaffected(node: Server): Promise<void> {
    const { apiId } = await node.ok("apis.createApi", { name: "siblings" });
    const create = (remaining: number) =>
      node.ok("keys.createKey", { apiId, externalId: "family", credits: { remaining } });
    const [empty, paying] = [await create(0), await create(10 * IDENTITY_LIMIT)];
    // The limit of the identity; neither key has a limit of this name.
    const ratelimits = [{ name: "calls", limit: IDENTITY_LIMIT, duration: YEAR, autoApply: true }];
    await node.ok("identities.updateIdentity", { identity: "family", ratelimits });

    let isOver = false;
    const emptyCodes = new Set<string>();
    const verifyEmpty = async () => {
      while (!isOver) emptyCodes.add((await node.ok("keys.verifyKey", { key: empty.key })).code);
    };
    const verifyingEmpty = Array.from({ length: SIBLING_CONNECTIONS }, verifyEmpty);
    const codes: string[] = [];
    const verifyPaying = async () => {
      while (codes.length < IDENTITY_LIMIT + 50) {
        codes.push((await node.ok("keys.verifyKey", { key: paying.key })).code);
      }
    };
    await Promise.all(Array.from({ length: PAYING_CALLERS }, verifyPaying));
    isOver = true;
    await Promise.all(verifyingEmpty);

    assert.equal(codes.filter((code) => code === "VALID").length, IDENTITY_LIMIT);
    assert(codes.every((code) => code === "VALID" || code === "RATE_LIMITED"));
    // Insufficient credits until the limit was exhausted, then the limit.
    assert.deepEqual([...emptyCodes].sort(), ["RATE_LIMITED", "USAGE_EXCEEDED"]);
    const { remaining } = (await node.ok("keys.getKey", { keyId: paying.keyId })).credits;
    assert.equal(remaining, 9 * IDENTITY_LIMIT);
    await node.kill("SIGTERM");
  }

  it("takes nothing from the identity's limit on sqlite", async (t) => {
    await assertLimitUnaffected(await start({ directory: makeFolder(t) }));
  });

  it("takes nothing from the identity's limit on postgres, with counters in Redis", async (t) => {
    const [node] = await startNodes(t, 1);
    await assertLimitUnaffected(node!);
  });
});
