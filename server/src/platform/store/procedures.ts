import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { buildLateIndexes } from "./deleted-rows.ts";
import { type DemoRows, insertDemoRows } from "./demo.ts";
import { findIdempotencyRecords, once } from "./idempotency.ts";
import {
  countOrphans,
  digestRows,
  type ForeignKey,
  findBrokenRules,
  findForeignKeys,
  findMissingParts,
  findSequences,
  findStoredTables,
  type StoreRules,
  type TableCursor,
} from "./inspection.ts";
import type { Lease } from "./lease.ts";
import { migrate, schemaState } from "./migrate.ts";
import type { MonthlyTable } from "./monthly-tables.ts";
import { findMove, insertPreparedCopy, requireCurrent, requireServable } from "./move/marks.ts";
import {
  findPartitionEpochs,
  findRedisEpoch,
  type PartitionEpoch,
  putPartitionEpochs,
  putRedisEpoch,
  type RedisEpoch,
} from "./redis-epochs.ts";
import {
  changeLayout,
  type LateIndex,
  type LayoutStep,
  type RetentionStep,
  type RetentionTask,
  retain,
  retentionLag,
  undoDivision,
} from "./retention.ts";
import { probeWrites } from "./sqlite/probe-writes.ts";
import type { PoolsOf, Sql } from "./store.ts";

/** What the features register. */
export interface StoreProceduresOptions<Task extends string> {
  retentionTasks: Readonly<Record<Task, RetentionTask>>;
  lateIndexes: readonly LateIndex[];
  /** What holds besides the constraints of the schema. */
  rules: StoreRules;
}

/** The procedures of the database as a whole: changes, migrations, retention, inspection. */
export function storeProcedures<Task extends string>({
  retentionTasks,
  lateIndexes,
  rules,
}: StoreProceduresOptions<Task>) {
  const procedures = {
    reading: {
      readChanges: async (sql: Sql, cursor: string | undefined) => {
        await requireCurrent(sql);
        return sql.dialect.readChanges(sql, cursor);
      },
      readRecentChanges: (sql: Sql, limit: number) => sql.dialect.readRecentChanges(sql, limit),
      findMove: (sql: Sql, _: null) => findMove(sql),
      requireServable: (sql: Sql, _: null) => requireServable(sql),
      idempotencyRecords: (sql: Sql, { scopes, now }: { scopes: readonly string[]; now: Instant }) =>
        findIdempotencyRecords(sql, scopes, now),
      redisEpoch: (sql: Sql, _: null) => findRedisEpoch(sql),
      schemaState: (sql: Sql, _: null) => schemaState(sql),
      partitionEpochs: (sql: Sql, _: null) => findPartitionEpochs(sql),
      missingParts: (sql: Sql, _: null) => findMissingParts(sql, lateIndexes),
      foreignKeys: (sql: Sql, _: null) => findForeignKeys(sql),
      orphans: (sql: Sql, key: ForeignKey) => countOrphans(sql, key),
      brokenRules: (sql: Sql, _: null) => findBrokenRules(sql, rules),
      sequences: (sql: Sql, _: null) => findSequences(sql),
      storedTables: (sql: Sql, _: null) => findStoredTables(sql),
      digestRows: (sql: Sql, cursor: TableCursor) => digestRows(sql, cursor),
      retentionLag: (sql: Sql, { table, ...step }: RetentionStep & { table: Task }) =>
        retentionLag(sql, retentionTasks[table], step),
      /** Not in a transaction, because PostgreSQL builds an index beside writes only outside of one. */
      buildLateIndexes: (sql: Sql, _: null) => buildLateIndexes(sql, lateIndexes),
      /** Not in a transaction, because it reads whole tables. */
      preparePartitions: (sql: Sql, table: MonthlyTable) => sql.dialect.partitions.prepare(sql, table),
      partitionStates: (sql: Sql, _: null) => sql.dialect.partitions.states(sql),
    },
    writing: {
      insertDemoRows: (sql: Sql, rows: DemoRows) => insertDemoRows(sql, rows),
      migrate: (sql: Sql, _: null) => migrate(sql),
      /** Migrates a database to copy to. A new one is an unfinished copy of `source` from the same commit on. */
      prepareCopy: async (sql: Sql, { source, now }: { source: string; now: Instant }) => {
        const isNew = (await schemaState(sql)).database === 0;
        await migrate(sql);
        if (isNew) await insertPreparedCopy(sql, source, now);
      },
      once,
      probeWrites: (sql: Sql, _: null) => probeWrites(sql),
      retain: (sql: Sql, { table, ...step }: RetentionStep & { table: Task; lease: Lease }) =>
        retain(sql, retentionTasks[table], step),
      changeLayout: (sql: Sql, step: LayoutStep) => changeLayout(sql, step),
      undoDivision: (sql: Sql, step: Omit<LayoutStep, "keep">) => undoDivision(sql, step),
      keepRedisEpoch: (sql: Sql, epoch: RedisEpoch) => putRedisEpoch(sql, epoch),
      keepPartitionEpochs: (sql: Sql, epochs: readonly PartitionEpoch[]) => putPartitionEpochs(sql, epochs),
    },
  };
  const pools: PoolsOf<typeof procedures> = {
    readChanges: "feed",
    readRecentChanges: "maintenance",
    once: "metered",
    idempotencyRecords: "metered",
    migrate: "maintenance",
    prepareCopy: "maintenance",
    retain: "maintenance",
    retentionLag: "maintenance",
    changeLayout: "maintenance",
    undoDivision: "maintenance",
    partitionStates: "maintenance",
    buildLateIndexes: "layout",
    preparePartitions: "layout",
    redisEpoch: "maintenance",
    keepRedisEpoch: "maintenance",
    schemaState: "maintenance",
    partitionEpochs: "maintenance",
    keepPartitionEpochs: "maintenance",
    missingParts: "maintenance",
    orphans: "maintenance",
    brokenRules: "maintenance",
    sequences: "maintenance",
    digestRows: "maintenance",
  };
  return { ...procedures, pools };
}
