/** Many calls on one pool that its own limit rejects: their effect on the event loop and on another pool. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { describe, it, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { Ledger } from "../../../engine/src/credits/ledger.ts";
import type { Charge } from "../../../engine/src/limits/counters.ts";
import { Limiter } from "../../../engine/src/limits/limiter.ts";
import { MemoryCounters } from "../../../engine/src/limits/memory-counters.ts";
import { MemoryTable, reserveTable } from "../../../engine/src/limits/memory-table.ts";
import { systemRandom } from "../../../engine/src/random/system.ts";
import { refillColumns } from "../../src/features/credits/record.ts";
import { BalanceWriter } from "../../src/features/credits/statements/balances.ts";
import { openPostgresStore } from "../../src/platform/store/postgres/store.ts";
import { openSqliteStore } from "../../src/platform/store/sqlite/store.ts";
import { openSqliteStoreHere } from "../../src/platform/store/sqlite/store-here.ts";
import type { Sql, Store } from "../../src/platform/store/store.ts";
import { type AppProcedures, openProcedures } from "../../src/service/procedures.ts";
import { type StoreKind, stores } from "../harness.ts";
import { makeFolder, ROOT_KEY } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";

const CALLS = 20_000;
const WARM_UP = 6_000;
/** Few, so that rejected calls release credits to other calls again and again. */
const CREDITS = 5;
const LIMIT = 3;
/**
 * CPU time between two turns of the event loop. The promise is 20 ms; this bound allows for other tests on the machine.
 */
const STALL_MAX_MS = 60;
/** Garbage is collected, and a processor is shared, at any moment: what blocks the loop does so in each attempt. */
const ATTEMPTS = 3;
/** CPU time of this process between a spend on another pool and its answer. */
const DELAY_MAX_MS = 1_500;

interface Ending {
  after(undo: () => void | Promise<void>): void;
}

/** Sets the balance of each pool. */
async function fill(sql: Sql, { workspaceId, pools }: { workspaceId: string; pools: Record<string, number> }) {
  const noRefill = refillColumns(null, systemClock.now());
  const balances = new BalanceWriter(sql, workspaceId);
  for (const [pool_id, remaining] of Object.entries(pools)) await balances.put({ pool_id, remaining, ...noRefill });
}

/** A migrated database with these balances. */
async function openStore(t: Ending, kind: StoreKind, pools: Record<string, number>): Promise<Store<AppProcedures>> {
  const folder = makeFolder(t);
  const filling = { reading: {}, writing: { fill } };
  const prepare = async (store: Store<AppProcedures>, fillingStore: Store<typeof filling>) => {
    const { workspaceId } = await store.transact("prepare", { now: systemClock.now(), rootKey: ROOT_KEY });
    await fillingStore.transact("fill", { workspaceId, pools });
    await fillingStore.close();
    t.after(() => store.close());
    return store;
  };
  if (kind === "sqlite") {
    const file = join(folder, "latchkey.db");
    const module = new URL("../../src/service/procedures.ts", import.meta.url).href;
    const options = { vault: { kind: "folder", folder } };
    const store = await openSqliteStore<AppProcedures>(file, { module, options }, { clock: systemClock });
    return prepare(store, openSqliteStoreHere(file, filling));
  }
  const { url } = await freshDatabase();
  const store = await openPostgresStore({ url, clock: systemClock }, openProcedures({ vault: { kind: "none" } }));
  return prepare(store, await openPostgresStore({ url, clock: systemClock }, filling));
}

/**
 * Measures the CPU time of this thread between two turns of its event loop. Wall time would include other processes.
 */
function watchLoop(): { stop(): number } {
  let longest = 0;
  let cpu = process.threadCpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(cpu);
    longest = Math.max(longest, (user + system) / 1_000);
    cpu = process.threadCpuUsage();
  }, 1);
  return {
    stop() {
      clearInterval(timer);
      return longest;
    },
  };
}

/** The longest turn of the loop, and the longest wait of another pool, in ms of CPU. */
async function attack(t: TestContext, kind: StoreKind): Promise<{ stall: number; longest: number }> {
  const store = await openStore(t, kind, { contended: CREDITS, other: CALLS });
  const limiter = new Limiter(
    new MemoryCounters(new MemoryTable(reserveTable(2 ** 22, false), 1, [7, 11]), systemClock),
    "closed",
    systemClock,
  );
  let gate = Promise.withResolvers<void>();
  gate.resolve();
  const ledger = new Ledger({
    clock: systemClock,
    random: systemRandom,
    charge: (charges: readonly Charge[]) => limiter.charge(charges),
    transact: async (batch, answer) => {
      await gate.promise;
      return store.transact("spend", batch, answer);
    },
  });
  const charges = [{ counter: "contended", limit: LIMIT, duration: 3_600_000, cost: 1 }];
  const outcomes: Record<string, number> = {};
  const spend = async () => {
    const { outcome } = await ledger.spend({ workspaceId: "one", balances: ["contended"], cost: 1, charges });
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  };
  // Warm-up, so that no compilation is measured.
  await Promise.all(Array.from({ length: WARM_UP }, spend));

  // The calls gather while a batch is not finished, as with a slow database.
  gate = Promise.withResolvers();
  const calls: Promise<void>[] = [];
  while (calls.length < CALLS) {
    for (let i = 0; i < 250; i++) calls.push(spend());
    await setImmediate();
  }
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const loop = watchLoop();
  const startedAt = performance.now();
  gate.resolve();
  const waits: number[] = [];
  let isOver = false;
  const beside = (async () => {
    while (!isOver) {
      const before = process.cpuUsage();
      await ledger.spend({ workspaceId: "other", balances: ["other"], cost: 1, charges: undefined });
      const { user, system } = process.cpuUsage(before);
      waits.push((user + system) / 1_000);
      await setImmediate();
    }
  })();
  await Promise.all(calls);
  const took = performance.now() - startedAt;
  isOver = true;
  await beside;
  const stall = loop.stop();
  delays.disable();

  const longest = Math.max(...waits);
  t.diagnostic(
    `${kind}: ${JSON.stringify(outcomes)} in ${took.toFixed(0)} ms; longest turn of the loop ` +
      `${stall.toFixed(1)} ms of CPU, ${(delays.max / 1e6).toFixed(1)} ms wall; ` +
      `${waits.length} spends on another pool meanwhile, ${longest.toFixed(0)} ms of CPU at most`,
  );
  assert.deepEqual(outcomes, { spent: LIMIT, limited: CALLS + WARM_UP - LIMIT });
  return { stall, longest };
}

describe(`${CALLS} spends on one pool that its limit rejects`, () => {
  for (const kind of stores) {
    it(`block the event loop for at most 20 ms, and do not block another pool, on ${kind}`, async (t) => {
      let { stall, longest } = await attack(t, kind);
      for (let attempt = 1; attempt < ATTEMPTS && (stall > STALL_MAX_MS || longest > DELAY_MAX_MS); attempt++) {
        ({ stall, longest } = await attack(t, kind));
      }
      assert(stall <= STALL_MAX_MS, `a turn of the loop took ${stall} ms`);
      assert(longest <= DELAY_MAX_MS, `another pool waited for ${longest} ms of CPU`);
    });
  }
});
