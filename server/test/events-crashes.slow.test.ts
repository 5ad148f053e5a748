/**
 * kill -9 during changes, spends and a program that follows the events. `ROUNDS=20 npm test -- events-crashes` kills more
 * often. The events must agree with what the database has: no committed change lacks its event, and no other has one.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Random } from "../../engine/src/random/random.ts";
import { seededRandom } from "../../engine/src/random/seeded.ts";
import { makeFolder, type ServeOptions, type Server, start } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

const ROUNDS = Number(process.env.ROUNDS ?? 2);
const CALLERS = 12;
const CREDITS = 10;
/** A fifth of them. */
const LOW = 2;

interface Event {
  id: string;
  type: string;
  data: { keyId: string; threshold?: number };
}

interface Key {
  keyId: string;
  enabled: boolean;
  credits: { remaining: number };
}

describe(`events agree with the database after kill -9, in ${ROUNDS} rounds`, () => {
  it("on sqlite", async (t) => {
    await killRepeatedly({ directory: makeFolder(t) });
  });

  it("on postgres", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    await killRepeatedly({ directory: makeFolder(t), settings: { DATABASE_URL: database.url } });
  });
});

async function killRepeatedly(options: ServeOptions): Promise<void> {
  const random = seededRandom(11);
  let server = await start(options);
  const { apiId } = await server.ok("apis.createApi", { name: "crashes" });
  const followed: Event[] = [];
  const acknowledged = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const follower = follow(server, followed);
    await changeUntilKilled(server, apiId, acknowledged, 60 + random.below(120), random);
    await follower;
    server = await start(options);
    await compare(server, apiId, acknowledged);
  }
  // A program that followed the events across all crashes has each of them once, in their order.
  await followOnce(server, followed);
  assert.deepEqual(
    followed.map(({ id }) => id),
    (await listAll(server)).map(({ id }) => id),
  );
  await server.kill("SIGTERM");
}

/** Follows the events until the server is gone. */
async function follow(server: Server, followed: Event[]): Promise<void> {
  for (;;) {
    const answered = await followOnce(server, followed).then(
      () => true,
      () => false,
    );
    if (!answered) return;
  }
}

async function followOnce(server: Server, followed: Event[]): Promise<void> {
  const last = followed.at(-1)?.id;
  followed.push(...((await server.ok("events.listEvents", last === undefined ? {} : { after: last })) as Event[]));
}

async function listAll(server: Server): Promise<Event[]> {
  const all: Event[] = [];
  for (let before = -1; before < all.length; ) {
    before = all.length;
    await followOnce(server, all);
  }
  return all;
}

/** Changes keys from many callers at once, and kills the server after this many answers. */
async function changeUntilKilled(
  server: Server,
  apiId: string,
  acknowledged: Set<string>,
  answers: number,
  random: Random,
): Promise<void> {
  let answered = 0;
  let killed: Promise<unknown> | undefined;
  const call = async (name: string, body: object) => {
    const answer = await server.call(name, body).catch(() => undefined);
    if (answer && ++answered >= answers) killed ??= server.kill("SIGKILL");
    return answer?.status === 200 ? answer.body.data : undefined;
  };
  const caller = async () => {
    while (!killed) {
      const created = await call("keys.createKey", { apiId, credits: { remaining: CREDITS } });
      if (created === undefined) continue;
      const { keyId, key } = created;
      acknowledged.add(keyId);
      // Rolled back after the key was inserted.
      await call("keys.createKey", { apiId, permissions: ["documents.read"], roles: ["missing"] });
      const spends = random.below(CREDITS + 2);
      for (let i = 0; i < spends; i++) await call("keys.verifyKey", { key });
      const change = random.below(3);
      if (change === 0) await call("keys.updateKey", { keyId, enabled: false });
      if (change === 1) await call("keys.deleteKey", { keyId });
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  await killed;
}

async function compare(server: Server, apiId: string, acknowledged: ReadonlySet<string>): Promise<void> {
  const events = await listAll(server);
  const told = (type: string) => new Set(events.filter((event) => event.type === type).map(({ data }) => data.keyId));
  const [created, deleted, disabled] = [told("key.created"), told("key.deleted"), told("key.disabled")];
  const keys = new Map((await listKeys(server, apiId)).map((key) => [key.keyId, key]));
  assert.deepEqual(new Set(keys.keys()), new Set([...created].filter((keyId) => !deleted.has(keyId))));
  for (const keyId of acknowledged) assert(created.has(keyId), `${keyId} was created without an event`);
  for (const [keyId, { enabled, credits }] of keys) {
    assert.equal(disabled.has(keyId), !enabled);
    const thresholds = events
      .filter(({ type, data }) => type === "credits.low" && data.keyId === keyId)
      .map(({ data }) => data.threshold);
    const expected = [...(credits.remaining <= LOW ? [LOW] : []), ...(credits.remaining === 0 ? [0] : [])];
    assert.deepEqual(thresholds, expected, `${credits.remaining} credits`);
  }
}

async function listKeys(server: Server, apiId: string): Promise<Key[]> {
  const all: Key[] = [];
  for (let cursor: string | undefined; ; ) {
    const { body } = await server.call("apis.listKeys", { apiId, limit: 100, ...(cursor && { cursor }) });
    all.push(...body.data);
    cursor = body.pagination.cursor;
    if (cursor === undefined) return all;
  }
}
