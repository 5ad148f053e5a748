import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { makeFolder, type RunOptions, type Server, start } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

const CALLERS = 16;
const ROUNDS = 3;

describe("a key whose creation was answered with 200 verifies after kill -9", () => {
  it("on sqlite", async (t) => {
    await killAgainAndAgain({ directory: makeFolder(t) });
  });

  it("on postgres", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    await killAgainAndAgain({ directory: makeFolder(t), settings: { DATABASE_URL: database.url } });
  });
});

/** Kills the service during a stream of createKey, after a different number of answers in each round. */
async function killAgainAndAgain(options: RunOptions): Promise<void> {
  const random = seededRandom(2);
  const acknowledged: string[] = [];
  let server = await start(options);
  const { apiId } = await server.ok("apis.createApi", { name: "durable" });
  for (let round = 1; round <= ROUNDS; round++) {
    const answers = 1 + random.below(120);
    const keys = await createUntilKilled(server, apiId, answers);
    assert(keys.length >= answers);
    acknowledged.push(...keys);
    server = await start(options);
    const lost = await rejected(server, acknowledged);
    assert.deepEqual(lost, [], `lost in round ${round}, killed after ${answers} answers`);
  }
  await server.kill("SIGTERM");
}

/** The keys that were answered before the service ended. */
async function createUntilKilled(server: Server, apiId: string, answers: number): Promise<string[]> {
  const keys: string[] = [];
  let killed: Promise<unknown> | undefined;
  const caller = async () => {
    for (;;) {
      // A call without an answer promises nothing.
      const answer = await server
        .call("keys.createKey", { apiId, externalId: "somebody", permissions: ["documents.read"] })
        .catch(() => undefined);
      if (!answer) return;
      assert.equal(answer.status, 200, `${JSON.stringify(answer.body)}\n${server.output}`);
      keys.push(answer.body.data.key);
      if (keys.length >= answers) killed ??= server.kill("SIGKILL");
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  assert.deepEqual(await killed, { code: null, signal: "SIGKILL" });
  return keys;
}

async function rejected(server: Server, keys: readonly string[]): Promise<string[]> {
  const answers = await Promise.all(
    keys.map((key) => server.ok("keys.verifyKey", { key, permissions: "documents.read" })),
  );
  return keys.filter((_, i) => answers[i].code !== "VALID");
}
