import { existsSync } from "node:fs";
import { join } from "node:path";
import { print, table } from "../../../../cli/src/output.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { version } from "../../platform/config/version.ts";
import { isSupported, pendingSteps, type SchemaState } from "../../platform/store/migrate.ts";
import type { PartitionState } from "../../platform/store/monthly-tables.ts";
import { openAnalyticsStore } from "../../service/analytics.ts";
import type { Invocation } from "./invocation.ts";
import { withStore } from "./store.ts";

/** Rows in a default partition are counted up to here. */
const STRAYS_SHOWN_MAX = 10_000;

/** Exit codes of `migrate status`, beside 0: nothing to do. */
const [PENDING, TOO_OLD] = [3, 4];

/**
 * Prints the schema versions of the database and of this program, and every migration. Sets the exit code: 0 if nothing
 * is pending, 3 if migrations are pending, 4 if this program is too old for the database.
 */
export function migrateStatus(invocation: Invocation): Promise<void> {
  return withStore(invocation, async (store) => {
    const schemas: Record<string, SchemaState> = { main: await store.read("schemaState", null) };
    const analytics = await analyticsState(invocation);
    if (analytics) schemas.analytics = analytics;
    const partitions = await store.read("partitionStates", null);
    const states = Object.values(schemas);
    const supported = states.every(isSupported);
    const pending = states.flatMap(pendingSteps);
    const needs = Object.fromEntries(Object.entries(schemas).map(([name, state]) => [name, needsAfter(state)]));
    const reported = Object.entries(schemas).map(([name, state]) => [
      name,
      { ...state, pending: pendingSteps(state), needsAfter: needs[name] },
    ]);
    const status = supported ? (pending.length > 0 ? "pending" : "current") : "too old";
    const result = { release: version, status, schemas: Object.fromEntries(reported), partitions };
    print(invocation.json, result, () => [
      ...table(
        ["schema", "database", `release ${version}`, "releases that may run"],
        Object.entries(schemas).map(([name, { database, program, needs }]) => [
          name,
          database === 0 ? "none" : String(database),
          String(program),
          database === 0 ? "any" : `of schema ${needs} or newer`,
        ]),
      ),
      "",
      ...table(
        ["migration", "state"],
        Object.entries(schemas).flatMap(([schema, state]) =>
          state.steps.map(({ name, executedAt }) => [
            schema === "main" ? name : `${schema} ${name}`,
            executedAt ? `ran at ${executedAt}` : "pending",
          ]),
        ),
      ),
      "",
      ...(partitions.length > 0 ? [...table(["table", "partitions"], partitions.map(describePartitions)), ""] : []),
      ...summary(schemas, needs, supported),
    ]);
    process.exitCode = supported ? (pending.length > 0 ? PENDING : 0) : TOO_OLD;
  });
}

function describePartitions({ table, isDivided, until, strays, reason }: PartitionState): [string, string] {
  if (!isDivided) {
    return [table, reason === null ? "none yet: the service divides it by month" : `none, because ${reason}`];
  }
  const many = strays > STRAYS_SHOWN_MAX ? `more than ${STRAYS_SHOWN_MAX}` : String(strays);
  const month = new Date(until! - 1).toISOString().slice(0, 7);
  return [table, `by month, to ${month}${strays > 0 ? `; ${many} rows in the default partition` : ""}`];
}

/** The lowest schema version of programs that may run once everything pending has run. */
function needsAfter({ needs, steps, program }: SchemaState): number {
  const demands = steps.filter(({ name }) => Number.parseInt(name, 10) <= program).map((step) => step.needs ?? 0);
  return Math.max(needs, ...demands);
}

function summary(
  schemas: Readonly<Record<string, SchemaState>>,
  after: Readonly<Record<string, number | undefined>>,
  supported: boolean,
): string[] {
  if (!supported) {
    return [
      "This release is too old for the database: start a newer one, or restore a backup from before the upgrade.",
    ];
  }
  const pending = Object.values(schemas).flatMap(pendingSteps);
  const ahead = Object.entries(schemas).filter(([, { database, program }]) => database > program);
  if (pending.length === 0) {
    return [
      ahead.length > 0
        ? "Nothing is pending. A newer release has migrated the database, and this one may still run on it."
        : "Nothing is pending.",
    ];
  }
  return Object.entries(schemas).flatMap(([name, state]) => {
    const names = pendingSteps(state);
    if (names.length === 0) return [];
    const needs = after[name]!;
    const beside =
      state.database === 0
        ? "The next start, or `latchkey migrate up`, runs them."
        : state.database >= needs
          ? "Nodes of the previous release may keep running meanwhile, and may be started again afterwards."
          : `Stop every node of a release below schema ${needs} first.`;
    return [`Pending in ${name}: ${names.join(", ")}. ${beside}`];
  });
}

/** The schema of analytics; undefined if it is not in SQL or its file does not exist yet. */
async function analyticsState({ config, secrets }: Invocation): Promise<SchemaState | undefined> {
  if (secrets.clickhouseUrl !== undefined) return undefined;
  if (config.database.kind === "sqlite") {
    if (!existsSync(join(config.dataDirectory, "analytics.db"))) return undefined;
  }
  const store = await openAnalyticsStore(config, secrets, systemClock);
  try {
    return await store.read("schemaState", null);
  } finally {
    await store.close();
  }
}

/** Runs the migrations that have not run. */
export function migrateUp(invocation: Invocation): Promise<void> {
  return withStore(
    invocation,
    async (store) => {
      const executed = await store.transact("migrate", null);
      print(invocation.json, { executed }, () =>
        executed.length === 0 ? ["Nothing to do: every migration has run."] : executed.map((name) => `ran ${name}`),
      );
    },
    { creates: true },
  );
}
