import { sql as raw } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { OperatorError } from "../log/operator-error.ts";
import { type MigrationStep, migrationSteps } from "./migrations/index.ts";
import type { Sql } from "./store.ts";

export interface MigrationStatus {
  name: string;
  /** When it ran, as ISO 8601; absent if it has not run. */
  executedAt?: string;
}

/** A newer version has migrated the database. */
export class NewerSchema extends OperatorError {
  constructor(name: string) {
    super(
      `The database has the migration "${name}", which this version does not have: a newer Latchkey has migrated it. ` +
        "Start that version, or restore a backup from before the upgrade.",
    );
    this.name = "NewerSchema";
  }
}

/** The migrations of one schema and where their state is stored. */
export interface MigrationPlan {
  readonly steps: Readonly<Record<string, MigrationStep>>;
  /** The table of the steps that have run. */
  readonly table: string;
  /** An arbitrary number that nothing else on the server uses as a lock. */
  readonly lock: number;
}

const mainPlan: MigrationPlan = { steps: migrationSteps, table: "kysely_migration", lock: 7_262_837_123_001 };

/**
 * Every step and whether it has run.
 *
 * @throws {NewerSchema} when a newer version has migrated the database.
 */
export async function migrationStatus(sql: Sql, plan = mainPlan): Promise<MigrationStatus[]> {
  const steps = await migrator(sql, plan).getMigrations();
  if (steps.some(({ executedAt }) => executedAt)) await rejectNewer(sql, plan);
  return steps.map(({ name, executedAt }) => ({
    name,
    ...(executedAt && { executedAt: executedAt.toISOString() }),
  }));
}

/**
 * Runs the steps that have not run, in the caller's transaction. A lock serializes nodes that start together. Returns the
 * names of the steps that it ran.
 *
 * @throws {NewerSchema} when a newer version has migrated the database.
 */
export async function migrate(sql: Sql, plan = mainPlan): Promise<string[]> {
  if (sql.dialect === "postgres") await raw`select pg_advisory_xact_lock(${plan.lock})`.execute(sql.db);
  let cause: unknown;
  const { error, results } = await migrator(sql, plan, (thrown) => {
    cause = thrown;
  }).migrateToLatest({ disableTransactions: true });
  if (error) {
    // Kysely reports a step in the database that the program does not have as corrupted migrations.
    if (String(error).includes("corrupted migrations")) await rejectNewer(sql, plan);
    // After a failed step PostgreSQL rejects Kysely's last statement too, and `error` is only that rejection.
    throw cause ?? error;
  }
  return (results ?? []).map((result) => result.migrationName);
}

async function rejectNewer(sql: Sql, { steps, table }: MigrationPlan): Promise<void> {
  const { rows } = await raw<{ name: string }>`select name from ${raw.table(table)}`.execute(sql.db);
  const unknown = rows.find(({ name }) => !(name in steps));
  if (unknown) throw new NewerSchema(unknown.name);
}

function migrator(
  { db, dialect }: Sql,
  { steps, table }: MigrationPlan,
  onFailure: (thrown: unknown) => void = () => {},
): Migrator {
  const migration = (step: MigrationStep): Migration => ({
    up: (db) =>
      step(db, dialect).catch((thrown: unknown) => {
        onFailure(thrown);
        throw thrown;
      }),
  });
  return new Migrator({
    db,
    migrationTableName: table,
    migrationLockTableName: `${table}_lock`,
    provider: {
      getMigrations: async () =>
        Object.fromEntries(Object.entries(steps).map(([name, step]) => [name, migration(step)])),
    },
  });
}
