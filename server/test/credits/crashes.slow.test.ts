/**
 * kill -9 during verifications that cost credits. `ROUNDS=20 npm test -- credits/crashes` kills more often. Each round
 * prints its sums: the balance before, the acknowledged spends, the spends without an answer, and the balance after the
 * restart.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { makeFolder, type ServeOptions, type Server, start } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";

const ROUNDS = Number(process.env.ROUNDS ?? 5);
const CALLERS = 64;
const KEYS = 4;
const CREDITS = 100_000;
const COSTS = [1, 2, 3];

describe(`acknowledged credits stay spent after kill -9 under ${CALLERS} callers, in ${ROUNDS} rounds`, () => {
  it("on sqlite", async (t) => {
    await killRepeatedly(t, [{ directory: makeFolder(t) }]);
  });

  it("on sqlite with four threads", async (t) => {
    await killRepeatedly(t, [{ directory: makeFolder(t), settings: { WORKERS: "4" } }]);
  });

  it("on postgres with three processes", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const settings = { DATABASE_URL: database.url, REDIS_URL: await sharedRedis() };
    await killRepeatedly(
      t,
      Array.from({ length: 3 }, () => ({ directory: makeFolder(t), settings })),
    );
  });
});

interface Account {
  readonly keyId: string;
  readonly key: string;
  balance: number;
  /** Credits of answered calls. */
  acknowledged: number;
  /** Credits of calls without an answer. */
  unanswered: number;
  calls: number;
}

async function killRepeatedly(t: { diagnostic(text: string): void }, nodes: readonly ServeOptions[]): Promise<void> {
  const random = seededRandom(5);
  const servers: Server[] = [];
  for (const node of nodes) servers.push(await start(node));
  const accounts = await openAccounts(servers[0]!);
  t.diagnostic("round   killed after   nodes killed        before  acknowledged  unanswered       after    no answer");
  for (let round = 1; round <= ROUNDS; round++) {
    const victims = servers.filter((_, i) => i === round % servers.length || random.below(3) === 0);
    const answers = 50 + random.below(600);
    await spendUntilKilled(servers, victims, accounts, answers, random);
    for (const victim of victims) {
      const i = servers.indexOf(victim);
      servers[i] = await start(nodes[i]!);
    }
    await auditBalances(t, servers[0]!, accounts, [round, answers, victims.length]);
  }
  await Promise.all(servers.map((server) => server.kill("SIGTERM")));
}

/** Keys with credits; every second one has a limit too, which is charged together with them. */
async function openAccounts(server: Server): Promise<Account[]> {
  const { apiId } = await server.ok("apis.createApi", { name: "crashes" });
  const ratelimits = [{ name: "requests", limit: 1_000_000, duration: 3_600_000, autoApply: true }];
  const made = Array.from({ length: KEYS }, (_, i) => {
    const limited = i % 2 === 1 && { ratelimits };
    return server.ok("keys.createKey", { apiId, credits: { remaining: CREDITS }, ...limited });
  });
  const empty = { balance: CREDITS, acknowledged: 0, unanswered: 0, calls: 0 };
  return (await Promise.all(made)).map(({ keyId, key }) => ({ keyId, key, ...empty }));
}

/** Verifies from many callers at once, and kills the victims after this many answers. */
async function spendUntilKilled(
  servers: readonly Server[],
  victims: readonly Server[],
  accounts: readonly Account[],
  answers: number,
  random: Random,
): Promise<void> {
  let answered = 0;
  let killed: Promise<unknown> | undefined;
  const caller = async (server: Server) => {
    while (!killed) {
      const account = accounts[random.below(accounts.length)]!;
      const cost = COSTS[random.below(COSTS.length)]!;
      const answer = await server
        .call("keys.verifyKey", { key: account.key, credits: { cost } })
        .catch(() => undefined);
      if (!answer) {
        account.unanswered += cost;
        account.calls++;
        continue;
      }
      assert.equal(answer.status, 200, `${JSON.stringify(answer.body)}\n${server.output.slice(-2_000)}`);
      assert.equal(answer.body.data.code, "VALID");
      account.acknowledged += cost;
      answered++;
      if (answered >= answers) killed ??= Promise.all(victims.map((victim) => victim.kill("SIGKILL")));
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, i) => caller(servers[i % servers.length]!)));
  await killed;
}

/** Compares the balances with the acknowledged spends, and starts the next round. */
async function auditBalances(
  t: { diagnostic(text: string): void },
  server: Server,
  accounts: readonly Account[],
  round: readonly number[],
): Promise<void> {
  const sum = { before: 0, acknowledged: 0, unanswered: 0, after: 0, calls: 0 };
  for (const account of accounts) {
    const { remaining } = (await server.ok("keys.getKey", { keyId: account.keyId })).credits;
    const { balance, acknowledged, unanswered, calls } = account;
    const state = JSON.stringify({ ...account, key: undefined, remaining });
    assert(remaining + acknowledged <= balance, `credits came back: ${state}`);
    assert(remaining + acknowledged + unanswered >= balance, `credits were lost: ${state}`);
    sum.before += balance;
    sum.acknowledged += acknowledged;
    sum.unanswered += unanswered;
    sum.after += remaining;
    sum.calls += calls;
    Object.assign(account, { balance: remaining, acknowledged: 0, unanswered: 0, calls: 0 });
  }
  assert(sum.calls <= CALLERS, `${sum.calls} calls had no answer`);
  const [number, answers, killed] = round;
  const cells = [
    number,
    answers,
    killed,
    sum.before,
    sum.acknowledged,
    sum.unanswered,
    sum.after,
    `${sum.calls} calls`,
  ];
  const widths = [5, 15, 15, 14, 14, 12, 12, 13];
  t.diagnostic(cells.map((cell, i) => String(cell).padStart(widths[i]!)).join(""));
}
