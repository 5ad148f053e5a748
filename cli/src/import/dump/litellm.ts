import { dumpRows } from "./dump.ts";
import { type DumpedKey, joinedRows } from "./rows.ts";

const keys = { name: "LiteLLM_VerificationToken", columns: ["token"], isRequired: true } as const;

type Values = Record<string, string | null>;

/** What keys refer to, by the columns that identify a row. Each table may be absent. */
const joinedTables = {
  LiteLLM_TeamTable: ["team_id"],
  LiteLLM_UserTable: ["user_id"],
  LiteLLM_OrganizationTable: ["organization_id"],
  LiteLLM_BudgetTable: ["budget_id"],
  LiteLLM_TeamMembership: ["team_id", "user_id"],
} as const;

type TableName = keyof typeof joinedTables;

/** Values that a key has from its row of `LiteLLM_BudgetTable` where its own are null. The limits of that row are a plan. */
const inherited = ["max_budget", "budget_duration", "max_parallel_requests", "model_max_budget"];

/** What a team, a user or an organization has besides its budget that restricts its keys. */
export const restrictions = [
  "soft_budget",
  "temp_budget_increase",
  "model_max_budget",
  "budget_limits",
  "tpm_limit",
  "rpm_limit",
  "tpd_limit",
  "max_parallel_requests",
  "models",
  "allowed_models",
  "metadata",
];
/** Restrictions can be long. This much says whether there is one. */
const RESTRICTION_LENGTH = 32;

/** The other columns that are kept in memory. */
const keptColumns = new Set([
  "team_id",
  "team_alias",
  "user_id",
  "user_alias",
  "organization_id",
  "organization_alias",
  "budget_id",
  "max_budget",
  "budget_duration",
  "spend",
  "blocked",
]);

/**
 * The keys in a dump of LiteLLM's database, with the rows that they refer to: a key with a team has the members `team`,
 * `organization`, which is that of the team, and `membership`, which is that of its user in it; another one has `user`. The file
 * is read twice: first the tables that keys refer to, which are kept in memory.
 */
export async function* litellmDumpRows(file: string): AsyncGenerator<DumpedKey> {
  const joined = await readJoined(file);
  const find = (table: TableName, ...ids: (string | null | undefined)[]) => joined.get(rowId(table, ids));
  const withBudget = (row: Readonly<Values> | undefined) =>
    row && { ...row, ...find("LiteLLM_BudgetTable", row.budget_id) };
  for await (const { values, progress } of dumpRows(file, [keys])) {
    const row = Object.fromEntries(values);
    const budget = { ...find("LiteLLM_BudgetTable", row.budget_id) };
    for (const column of inherited) {
      row[column] ??= budget[column] ?? null;
      delete budget[column];
    }
    const team = find("LiteLLM_TeamTable", row.team_id);
    const fields = {
      ...row,
      budget: budget.budget_id && budget,
      team,
      organization: withBudget(find("LiteLLM_OrganizationTable", team?.organization_id)),
      membership: withBudget(find("LiteLLM_TeamMembership", row.team_id, row.user_id)),
      user: row.team_id ? undefined : find("LiteLLM_UserTable", row.user_id),
    };
    yield { fields, progress };
  }
}

async function readJoined(file: string): Promise<ReadonlyMap<string, Readonly<Values>>> {
  const tables = Object.entries(joinedTables).map(([name, columns]) => ({ name, columns }));
  const joined = new Map<string, Readonly<Values>>();
  for await (const { table, values } of joinedRows(file, tables)) {
    const ids = joinedTables[table as TableName].map((column) => values.get(column));
    const row: Values = {};
    for (const [column, value] of values) {
      if (keptColumns.has(column)) row[column] = value;
      else if (restrictions.includes(column)) row[column] = value?.slice(0, RESTRICTION_LENGTH) ?? null;
    }
    joined.set(rowId(table, ids), row);
  }
  return joined;
}

function rowId(table: string, ids: readonly (string | null | undefined)[]): string {
  return JSON.stringify([table, ...ids]);
}
