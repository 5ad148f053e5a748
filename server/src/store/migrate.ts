import { sql as raw } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { OperatorError } from "../log/operator-error.ts";
import { type MigrationStep, migrationSteps } from "./migrations/index.ts";
import type { Sql } from "./store.ts";

export interface MigrationStatus {
  name: string;
  /** When it ran here, as ISO 8601; absent while it waits. */
  executedAt?: string;
}

/** The database was made by a newer program than this one. */
export class NewerSchema extends OperatorError {
  constructor(name: string) {
    super(
      `The database has the migration "${name}", which this program does not know: it was made by a newer Latchkey. ` +
        "Start that version, or restore a backup from before the upgrade.",
    );
    this.name = "NewerSchema";
  }
}

/** A schema that lives in a database by itself: its steps, and where they are noted down. */
export interface MigrationPlan {
  readonly steps: Readonly<Record<string, MigrationStep>>;
  /** The table that says which steps have run. */
  readonly table: string;
  /** Any fixed number will do, as long as nothing else on the server takes the same one. */
  readonly lock: number;
}

const ledger: MigrationPlan = { steps: migrationSteps, table: "kysely_migration", lock: 7_262_837_123_001 };

/**
 * Every step and whether it has run.
 *
 * @throws {NewerSchema} when a newer program was here before.
 */
export async function migrationStatus(sql: Sql, plan = ledger): Promise<MigrationStatus[]> {
  const steps = await migrator(sql, plan).getMigrations();
  if (steps.some(({ executedAt }) => executedAt)) await refuseNewer(sql, plan);
  return steps.map(({ name, executedAt }) => ({
    name,
    ...(executedAt && { executedAt: executedAt.toISOString() }),
  }));
}

/**
 * Runs what has not run, all or nothing, in the caller's transaction; nodes that start together wait for each other.
 * Gives the names of the steps that ran.
 *
 * @throws {NewerSchema} when a newer program was here before.
 */
export async function migrate(sql: Sql, plan = ledger): Promise<string[]> {
  if (sql.dialect === "postgres") await raw`select pg_advisory_xact_lock(${plan.lock})`.execute(sql.db);
  let cause: unknown;
  const { error, results } = await migrator(sql, plan, (thrown) => {
    cause = thrown;
  }).migrateToLatest({ disableTransactions: true });
  if (error) {
    // Kysely's word for a step in the database that the program does not have.
    if (String(error).includes("corrupted migrations")) await refuseNewer(sql, plan);
    // After a step has failed PostgreSQL refuses what Kysely does last as well, and that is all that `error` tells.
    throw cause ?? error;
  }
  return (results ?? []).map((result) => result.migrationName);
}

async function refuseNewer(sql: Sql, { steps, table }: MigrationPlan): Promise<void> {
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
