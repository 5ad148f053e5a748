import { sql as raw } from "kysely";
import { OperatorError } from "../../log/operator-error.ts";
import { firstSteps, type MigrationStep, type SchemaStep, schemaSteps } from "./migrations/index.ts";
import { onlyRow } from "./only-row.ts";
import type { Sql } from "./store.ts";

/** The steps of one schema and where their state is stored: decisions/030. */
export interface MigrationPlan {
  /** Steps in a table in which programs of these steps alone accept no other name. */
  readonly first: { readonly steps: Readonly<Record<string, MigrationStep>>; readonly table: string };
  /** Later steps, and their table. */
  readonly steps: Readonly<Record<string, SchemaStep>>;
  readonly table: string;
  /** An arbitrary number that nothing else on the server uses as a lock. */
  readonly lock: number;
  /**
   * The table that transactions of running nodes read before all others that steps change. Steps wait for these transactions
   * there, before they have locked anything that one of them needs.
   */
  readonly readFirst?: string;
}

/** A step, and what the database knows of it. */
export interface StepState {
  name: string;
  /** When it ran, as ISO 8601; absent if it has not run. */
  executedAt?: string;
  /** The lowest schema version of programs that may run on a database with this step; absent without a demand. */
  needs?: number;
}

/** The state of one schema. A version is the number of the last step; 0: none. */
export interface SchemaState {
  /** The version of the database. */
  database: number;
  /** The version of this program. */
  program: number;
  /** The lowest version of programs that may run on this database. */
  needs: number;
  /** Every step, in order, with those that only a newer program has. */
  steps: StepState[];
}

/** A newer program has changed the database so that this one cannot run on it. */
export class NewerSchema extends OperatorError {
  /** `last`: the name of the last migration of the database. */
  constructor({ last, needs, program }: { last: string; needs: number; program: number }) {
    super(
      `The database has the migration "${last}" of a newer Latchkey and needs a release of schema ${needs} or newer; ` +
        `this one is of schema ${program}. Start a newer release, or restore a backup from before the upgrade.`,
    );
    this.name = "NewerSchema";
  }
}

export const mainPlan: MigrationPlan = {
  first: { steps: firstSteps, table: "kysely_migration" },
  steps: schemaSteps,
  table: "schema_steps",
  lock: 7_262_837_123_001,
  readFirst: "root_keys",
};

/** Whether this program may run on the database. */
export function isSupported({ needs, program }: SchemaState): boolean {
  return program >= needs;
}

/** @throws {NewerSchema} when this program may not run on the database. */
export function requireSupported(state: SchemaState): void {
  const last = state.steps.findLast(({ executedAt }) => executedAt !== undefined)?.name ?? "none";
  if (!isSupported(state)) throw new NewerSchema({ ...state, last });
}

/** The names of the steps that have not run. */
export function pendingSteps({ steps }: SchemaState): string[] {
  return steps.filter(({ executedAt }) => executedAt === undefined).map(({ name }) => name);
}

/** The schema version of this program. */
export function programVersion({ first, steps }: MigrationPlan): number {
  return versionOf([...Object.keys(first.steps), ...Object.keys(steps)].at(-1));
}

/** Reads the state of a schema. */
export async function schemaState(sql: Sql, plan = mainPlan): Promise<SchemaState> {
  const { first, steps, table } = plan;
  const later = await executedLater(sql, table);
  const executed = [...(await executedFirst(sql, first, later)), ...later];
  const known = [...Object.keys(first.steps), ...Object.keys(steps)];
  const ran = new Map(executed.map((step) => [step.name, step]));
  const all: StepState[] = [
    ...known.map((name) => ran.get(name) ?? { name, ...demand(steps[name]?.needs ?? 0) }),
    ...[...ran.values()].filter(({ name }) => !known.includes(name)),
  ];
  // A program of the first steps alone rejects every name that it does not have.
  const base = versionOf(Object.keys(first.steps).at(-1));
  return {
    database: Math.max(0, ...executed.map(({ name }) => versionOf(name))),
    program: programVersion(plan),
    needs: executed.reduce((needs, step) => Math.max(needs, step.needs ?? 0), executed.length > 0 ? base : 0),
    steps: all,
  };
}

/**
 * Runs the steps that have not run, in the caller's transaction. A lock serializes nodes that start together. Returns the
 * names of the steps that it ran.
 *
 * @throws {NewerSchema} when this program cannot run on the database.
 */
export async function migrate(sql: Sql, plan = mainPlan): Promise<string[]> {
  await sql.dialect.locks.lockNumber(sql, plan.lock);
  const state = await schemaState(sql, plan);
  requireSupported(state);
  const pending = pendingSteps(state);
  if (pending.length === 0) return [];
  const { readFirst } = plan;
  if (readFirst !== undefined && (await sql.dialect.schema.hasTable(sql, readFirst))) {
    await sql.dialect.locks.lockTable(sql, readFirst);
  }
  await createTables(sql, plan);
  for (const name of pending) {
    const first = plan.first.steps[name];
    const { up, needs } = first === undefined ? plan.steps[name]! : { up: first, needs: 0 };
    await up(sql.db as never, sql.dialect.name);
    await record(sql, plan, name, needs);
  }
  return pending;
}

/**
 * Demands that programs have a step, before something is stored that others misread. Returns false, and demands nothing,
 * while such a program may run: one that uses the database, or one that is starting. Later ones reject the database.
 */
export async function demandStep(sql: Sql, name: string, plan = mainPlan): Promise<boolean> {
  const version = versionOf(name);
  const { rows } = await raw<{ needs: number }>`
    select needs from ${raw.table(plan.table)} where name = ${name}`.execute(sql.db);
  if (Number(onlyRow({ rows }).needs) >= version) return true;
  // A program that starts reads the demands with this lock, alone. Waiting for it could deadlock with the steps of an
  // upgrade. Those that demand share it, and wait for one another at the row.
  if (!(await sql.dialect.locks.tryLockNumber(sql, plan.lock, "shared"))) return false;
  if (await sql.dialect.schema.hasOlderPrograms(sql, version)) return false;
  await raw`update ${raw.table(plan.table)} set needs = ${version} where name = ${name} and needs < ${version}`.execute(
    sql.db,
  );
  await recordForFirst(sql, plan, name);
  return true;
}

/** The number of a step: `15` of `015-sessions`. */
export function versionOf(name = "0"): number {
  return Number.parseInt(name, 10);
}

const demand = (needs: number) => (needs > 0 ? { needs } : {});

async function executedFirst(
  sql: Sql,
  { steps, table }: MigrationPlan["first"],
  later: readonly StepState[],
): Promise<StepState[]> {
  if (!(await sql.dialect.schema.hasTable(sql, table))) return [];
  const { rows } = await raw<{ name: string; timestamp: string }>`
    select name, timestamp from ${raw.table(table)} order by name`.execute(sql.db);
  return rows
    .filter(({ name }) => later.every((step) => step.name !== name))
    .map(({ name, timestamp }) => ({
      name,
      executedAt: timestamp,
      ...(name in steps ? {} : demand(versionOf(name))),
    }));
}

async function executedLater(sql: Sql, table: string): Promise<StepState[]> {
  if (!(await sql.dialect.schema.hasTable(sql, table))) return [];
  const { rows } = await raw<{ name: string; executed_at: string; needs: number }>`
    select name, executed_at, needs from ${raw.table(table)} order by name`.execute(sql.db);
  return rows.map(({ name, executed_at, needs }) => ({ name, executedAt: executed_at, ...demand(Number(needs)) }));
}

async function createTables({ db, dialect }: Sql, { first, table }: MigrationPlan): Promise<void> {
  const { text, integer } = dialect.schema.types;
  await raw`create table if not exists ${raw.table(first.table)}
    (name varchar(255) not null primary key, timestamp varchar(255) not null)`.execute(db);
  await raw`create table if not exists ${raw.table(table)} (name ${raw.raw(text)} not null primary key,
    executed_at ${raw.raw(text)} not null, needs ${raw.raw(integer)} not null)`.execute(db);
}

/** A program of the first steps alone does not read the other table. It rejects a name that it does not have. */
async function recordForFirst({ db, dialect }: Sql, { first }: MigrationPlan, name: string): Promise<void> {
  const now = dialect.time.isoClock;
  await raw`insert into ${raw.table(first.table)} (name, timestamp) values (${name}, ${now})
    on conflict (name) do nothing`.execute(db);
}

async function record({ db, dialect }: Sql, plan: MigrationPlan, name: string, needs: number): Promise<void> {
  const now = dialect.time.isoClock;
  const { first, table } = plan;
  const isFirst = name in first.steps;
  if (isFirst || needs > versionOf(Object.keys(first.steps).at(-1))) await recordForFirst({ db, dialect }, plan, name);
  if (!isFirst) {
    await raw`insert into ${raw.table(table)} (name, executed_at, needs) values (${name}, ${now}, ${needs})`.execute(
      db,
    );
  }
}
