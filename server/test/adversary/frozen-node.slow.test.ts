/** Spends while one node is frozen, as by SIGSTOP, a paused machine or a dead network. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Client } from "pg";
import { busyness } from "../busyness.ts";
import { makeFolder, type Server, start } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";

const CREDITS = 1_000_000;
/** Keys that both nodes spend from, and keys that only the living node spends from. */
const SHARED = 24;
const OTHERS = 8;
const CALLERS_FROZEN = 48;
const FREEZES = 2;
const FROZEN_MS = 4_500;
/** How long a frozen node may delay spends on the pools that it was writing. */
const DELAY_MAX_MS = 3_000;
/** The number that a batch of the ledger locks for its turn. */
const TURN_LOCK = 7_262_837_123_012;
/** How long a spend waits for its turn. */
const TURN_MS = 400;
/** How long another transaction writes a balance. */
const WRITING_MS = 200;
/** Allowance for other tests on the same machine. */
const SLACK_MS = 1_500;

interface Account {
  key: string;
  keyId: string;
  acknowledged: number;
}

/** The longest wait of a kind of call, and the number of answers by status. */
class Waits {
  longest = 0;
  readonly statuses: Record<number, number> = {};

  record(status: number, ms: number): void {
    this.longest = Math.max(this.longest, ms);
    this.statuses[status] = (this.statuses[status] ?? 0) + 1;
  }

  toString(): string {
    return `${Math.round(this.longest)} ms ${JSON.stringify(this.statuses)}`;
  }
}

describe("a node that is frozen under load", () => {
  it("delays spends on the pools that it was writing by at most 3 s, and no others", (t) => freeze(t, false));

  it("delays spends below the root budget that it was writing by at most 3 s, and none below another", (t) =>
    freeze(t, true));
});

it("a turn of a frozen node delays the first spend of a free balance by at most 400 ms, and no later one", async (t) => {
  const database = await freshDatabase();
  t.after(() => database.drop());
  const [frozen, writing] = [1, 2].map(() => new Client({ connectionString: database.url })) as [Client, Client];
  for (const client of [frozen, writing]) {
    // Dropping the database disconnects it.
    client.on("error", () => {});
    await client.connect();
  }
  const node = await start({ directory: makeFolder(t), settings: { DATABASE_URL: database.url, ANALYTICS: "off" } });
  const [account] = (await openAccounts(node, 1, false)) as [Account];
  await frozen.query("begin");
  await frozen.query("select pg_advisory_xact_lock($1)", [TURN_LOCK]);
  const waits: number[] = [];
  for (let i = 0; i < 3; i++) {
    await writing.query("begin");
    await writing.query("select 1 from balances for update");
    const startedAt = performance.now();
    const answer = node.call("keys.verifyKey", { key: account.key });
    await setTimeout(WRITING_MS);
    await writing.query("commit");
    assert.equal((await answer).body.data.code, "VALID");
    waits.push(Math.round(performance.now() - startedAt));
  }
  t.diagnostic(`${waits} ms`);
  const [first, ...next] = waits as [number, ...number[]];
  assert(first < TURN_MS + SLACK_MS * busyness(), `${first} ms`);
  for (const wait of next) assert(wait < WRITING_MS + SLACK_MS * busyness(), `${waits} ms`);
  assert(
    next.some((wait) => wait < TURN_MS),
    `${waits} ms`,
  );
  await frozen.query("rollback");
  await node.kill("SIGTERM");
});

/** `hasRoots`: whether all shared accounts are below one budget, and the others below another. */
async function freeze(t: TestContext, hasRoots: boolean): Promise<void> {
  const database = await freshDatabase();
  t.after(() => database.drop());
  const observer = new Client({ connectionString: database.url });
  // Dropping the database disconnects it.
  observer.on("error", () => {});
  await observer.connect();
  const settings = { DATABASE_URL: database.url, REDIS_URL: await sharedRedis(), ANALYTICS: "off" };
  const frozen = await start({ directory: makeFolder(t), settings });
  const living = await start({ directory: makeFolder(t), settings });
  const shared = await openAccounts(living, SHARED, hasRoots);
  const others = await openAccounts(living, OTHERS, hasRoots);

  let isOver = false;
  let measured = { shared: new Waits(), others: new Waits() };
  const spend = async (server: Server, account: Account) => {
    const answer = await server.call("keys.verifyKey", { key: account.key });
    if (answer.status === 200) {
      assert.equal(answer.body.data.code, "VALID");
      account.acknowledged++;
    } else assert([409, 503].includes(answer.status), JSON.stringify(answer.body));
    return answer;
  };
  /** A call counts in the phase in which it was answered. */
  const watch = async (kind: "shared" | "others", account: Account) => {
    while (!isOver) {
      const startedAt = performance.now();
      const { status } = await spend(living, account);
      measured[kind].record(status, performance.now() - startedAt);
    }
  };
  const callers = [
    ...Array.from({ length: CALLERS_FROZEN }, async (_, i) => {
      while (!isOver) await spend(frozen, shared[i % SHARED]!);
    }),
    ...shared.map((account) => watch("shared", account)),
    ...others.map((account) => watch("others", account)),
  ];
  const phase = async (ms: number) => {
    measured = { shared: new Waits(), others: new Waits() };
    await setTimeout(ms);
    return measured;
  };
  await phase(1_000);
  const before = await phase(1_500);
  t.diagnostic(`before: shared pools ${before.shared}, other pools ${before.others}`);
  const rounds: (typeof before)[] = [];
  for (let round = 0; round < FREEZES; round++) {
    await freezeWriting(frozen, observer);
    rounds.push(await phase(FROZEN_MS));
    frozen.signal("SIGCONT");
    t.diagnostic(`frozen: shared pools ${rounds[round]!.shared}, other pools ${rounds[round]!.others}`);
    await phase(500);
  }
  isOver = true;
  await Promise.all(callers);

  for (const { shared, others } of rounds) {
    assert(shared.longest <= DELAY_MAX_MS + SLACK_MS * busyness(), `shared pools: ${shared}`);
    assert(others.longest <= before.others.longest + SLACK_MS * busyness(), `others: ${others}`);
    assert.deepEqual(Object.keys(others.statuses), ["200"]);
  }
  for (const { keyId, acknowledged } of [...shared, ...others]) {
    const { remaining } = (await living.ok("keys.getKey", { keyId })).credits;
    assert.equal(remaining + acknowledged, CREDITS);
  }
  const sum = [...shared, ...others].reduce((all, { acknowledged }) => all + acknowledged, 0);
  t.diagnostic(`the balances of ${SHARED + OTHERS} pools are exact after ${sum} spends`);
  for (const accounts of hasRoots ? [shared, others] : []) {
    const { budgetId } = await living.ok("keys.getKey", { keyId: accounts[0]!.keyId });
    const { totals } = await living.ok("budgets.getBudget", { budgetId });
    assert.equal(
      totals.spent,
      accounts.reduce((all, { acknowledged }) => all + acknowledged, 0),
    );
  }
  await Promise.all([frozen, living].map((node) => node.kill("SIGTERM")));
}

/** Freezes a node while it holds locks on balances. */
async function freezeWriting(node: Server, observer: Client): Promise<void> {
  const holding = `
    select 1 from pg_stat_activity join pg_locks using (pid) join pg_class on pg_class.oid = relation
    where datname = current_database() and relname = 'balances' and mode = 'RowShareLock' and granted
    and state = 'idle in transaction' and clock_timestamp() - state_change > interval '100 ms'`;
  for (let attempts = 0; attempts < 200; attempts++) {
    node.signal("SIGSTOP");
    await setTimeout(120);
    if ((await observer.query(holding)).rows.length > 0) return;
    node.signal("SIGCONT");
    await setTimeout(10 + (attempts % 7));
  }
  throw new Error("The node was never frozen while it held a lock");
}

/** Keys with credits; every second one has a limit too, which is charged together with them. */
async function openAccounts(server: Server, count: number, hasRoot: boolean): Promise<Account[]> {
  const { apiId } = await server.ok("apis.createApi", { name: "frozen" });
  const root = hasRoot && (await server.ok("budgets.createBudget", { name: "root", remaining: 10 * CREDITS }));
  const ratelimits = [{ name: "requests", limit: 1_000_000, duration: 3_600_000, autoApply: true }];
  const made = Array.from({ length: count }, (_, i) =>
    server.ok("keys.createKey", {
      apiId,
      credits: { remaining: CREDITS },
      ...(root && { budgetId: root.budgetId }),
      ...(i % 2 === 1 && { ratelimits }),
    }),
  );
  return (await Promise.all(made)).map(({ key, keyId }) => ({ key, keyId, acknowledged: 0 }));
}
