/** The store of the service with procedures that only benches need: many new keys and budgets at once, and a spend without a ledger. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { sql as raw } from "kysely";
import { instantAt } from "../../engine/src/clock/clock.ts";
import { systemClock } from "../../engine/src/clock/system.ts";
import { HASH_VERSION, hashSecret } from "../../engine/src/crypto/hash.ts";
import { systemSecrets } from "../../engine/src/crypto/secret.ts";
import { newId } from "../../engine/src/random/random.ts";
import { systemRandom } from "../../engine/src/random/system.ts";
import { openBooks } from "../../engine/src/rules/books.ts";
import { formatKey } from "../../engine/src/rules/key-string.ts";
import { ApiWriter } from "../../server/src/features/apis/statements.ts";
import { BudgetWriter } from "../../server/src/features/budgets/statements.ts";
import { refillColumns } from "../../server/src/features/credits/record.ts";
import { BalanceWriter } from "../../server/src/features/credits/statements/balances.ts";
import { KeyWriter } from "../../server/src/features/keys/statements/keys.ts";
import { openPostgresStore } from "../../server/src/platform/store/postgres/store.ts";
import { openSqliteStore } from "../../server/src/platform/store/sqlite/store.ts";
import type { Sql, Store } from "../../server/src/platform/store/store.ts";
import { StoreWriter } from "../../server/src/platform/store/workspace-store.ts";
import { flag } from "../../server/src/platform/vocabulary/columns.ts";
import { type AppProcedures, openProcedures, type ProcedureOptions } from "../../server/src/service/procedures.ts";

/** Keys of a new API. */
export interface NewKeys {
  workspaceId: string;
  count: number;
  /** null: unlimited. */
  remaining: number | null;
  /** Budgets that they share in turn. */
  budgetIds?: readonly string[];
  /** Whether they count as used at `now`. The first use of a key is an event, which costs more than a later use. */
  areUsed?: boolean;
  /** Epoch milliseconds. */
  now: number;
}

export interface CreatedKey {
  key: string;
  keyId: string;
  poolId: string;
}

export type BenchProcedures = {
  reading: AppProcedures["reading"];
  writing: AppProcedures["writing"] & {
    createKeys: typeof createKeys;
    createBudgets: typeof createBudgets;
    updateOne: typeof updateOne;
  };
};

/** The thread of the embedded database opens the default export of its module. */
export default function openBenchProcedures(options: ProcedureOptions): BenchProcedures {
  const service = openProcedures(options);
  return { reading: service.reading, writing: { ...service.writing, createKeys, createBudgets, updateOne } };
}

/** Opens the store of the service with this data folder: on PostgreSQL, or the embedded database in the folder. */
export async function openBenchStore(folder: string, postgresUrl?: string): Promise<Store<BenchProcedures>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (postgresUrl !== undefined) {
    const procedures = openBenchProcedures({ vault: { kind: "none" } });
    return openPostgresStore({ url: postgresUrl, clock: systemClock, connectionsMax: 16 }, procedures);
  }
  const module = { module: import.meta.url, options: { vault: { kind: "folder", folder } } };
  return openSqliteStore(join(folder, "latchkey.db"), module, { clock: systemClock });
}

/** Creates budgets without a parent; returns their ids. */
async function createBudgets(
  sql: Sql,
  { workspaceId, count, remaining, now }: { workspaceId: string; count: number; remaining: number; now: number },
): Promise<string[]> {
  const [store, created_at] = [new StoreWriter(sql, workspaceId), instantAt(now)];
  const none = { parent_id: null, unit: null, thresholds: null, meta: null };
  const books = { ...openBooks(remaining), watched: flag(false) };
  const ids = Array.from({ length: count }, () => newId(systemRandom, "bud"));
  for (const id of ids) {
    await store.of(BudgetWriter).insert({ id, name: "bench", ...none, created_at });
    await store.of(BalanceWriter).put({ pool_id: id, ...books, ...refillColumns(null, created_at) }, null);
  }
  return ids;
}

/** One spend as one statement in a transaction of its own. Returns the new balance; undefined: it was too low. */
async function updateOne(sql: Sql, { poolId, cost }: { poolId: string; cost: number }): Promise<number | undefined> {
  const row = await sql.db
    .updateTable("balances")
    .set({ remaining: raw<number>`remaining - ${cost}` })
    .where("pool_id", "=", poolId)
    .where("remaining", ">=", cost)
    .returning("remaining")
    .executeTakeFirst();
  return row?.remaining;
}

async function createKeys(
  sql: Sql,
  { workspaceId, count, remaining, budgetIds = [], areUsed = false, now }: NewKeys,
): Promise<CreatedKey[]> {
  const store = new StoreWriter(sql, workspaceId);
  const created_at = instantAt(now);
  const apiId = newId(systemRandom, "api");
  await store
    .of(ApiWriter)
    .insert({ id: apiId, name: "bench", ownKeyAccess: false, ownKeyDerivation: false, createdAt: created_at });
  const made: CreatedKey[] = [];
  for (let i = 0; i < count; i++) {
    const { key, start } = formatKey("bench", systemSecrets(16));
    const poolId = newId(systemRandom, "pool");
    const keyId = newId(systemRandom, "key");
    await store.of(KeyWriter).insert({
      id: keyId,
      api_id: apiId,
      identity_id: null,
      budget_id: budgetIds[i % budgetIds.length] ?? null,
      concurrency: null,
      allowed_ips: null,
      pool_id: poolId,
      hash: hashSecret(key),
      hash_version: HASH_VERSION,
      start,
      name: null,
      meta: null,
      enabled: 1,
      recoverable: 0,
      expires_at: null,
      created_at,
    });
    if (remaining !== null) {
      await store.of(BalanceWriter).put({ pool_id: poolId, remaining, ...refillColumns(null, created_at) });
    }
    made.push({ key, keyId, poolId });
  }
  if (areUsed) {
    await raw`insert into key_usage (key_id, workspace_id, last_used_at)
      select id, workspace_id, ${now} from keys where api_id = ${apiId}`.execute(sql.db);
  }
  // PostgreSQL does this by itself within a minute; until then it plans for empty tables.
  await raw`analyze`.execute(sql.db);
  return made;
}
