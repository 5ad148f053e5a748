import { type RawBuilder, sql as raw } from "kysely";
import type { Sql } from "../../../platform/store/store.ts";
import type { Batch } from "../batch.ts";
import { acceptedCodes } from "../decision-log.ts";
import type { DecisionQuery, FoundDecision, LogBounds } from "../rollups.ts";

const ROWS_PER_STATEMENT = 40;
/** Rows deleted per transaction. */
const ROWS_PER_PRUNING = 5_000;

const columns = ["workspace_id", "at", "id", "code", "key_id", "api_id", "identity_id", "namespace_id", "request_id"];
const insertInto = `insert into analytics_decisions (${[...columns, "answer"].join(", ")})`;
const columnTypes = ["text", "bigint", "text", "text", "text", "text", "text", "text", "text", "text"] as const;
const countRows = 'insert into analytics_decision_counts as t (workspace_id, "rows")';
const addUp = 'on conflict (workspace_id) do update set "rows" = t."rows" + excluded."rows"';

/** The id of a row: the same if the batch is sent again. */
export function decisionId({ recorder, sequence }: Pick<Batch, "recorder" | "sequence">, index: number): string {
  return `dec_${recorder.replace(/^rec_/, "")}_${sequence}_${index}`;
}

/** Adds the decisions of batches to the log. */
export async function addDecisions(sql: Sql, batches: readonly Batch[]): Promise<void> {
  const rows = batches.flatMap((batch) =>
    batch.decisions.map(([at, workspaceId, code, key, api, identity, namespace, request, answer], i) => [
      workspaceId,
      at,
      decisionId(batch, i),
      code,
      key,
      api,
      identity,
      namespace,
      request,
      JSON.stringify(answer),
    ]),
  );
  if (rows.length === 0) return;
  const { values } = sql.dialect;
  const counts = new Map<string, number>();
  for (const [workspaceId] of rows as [string][]) counts.set(workspaceId, (counts.get(workspaceId) ?? 0) + 1);
  for (let i = 0; i < rows.length; i += ROWS_PER_STATEMENT) {
    await sql.db.executeQuery(values.insertion(insertInto, columnTypes, rows.slice(i, i + ROWS_PER_STATEMENT), ""));
  }
  // All nodes write rows in the same order, so that no deadlock is possible.
  const sorted = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  for (let i = 0; i < sorted.length; i += ROWS_PER_STATEMENT) {
    const some = sorted.slice(i, i + ROWS_PER_STATEMENT);
    await sql.db.executeQuery(values.insertion(countRows, ["text", "bigint"], some, addUp));
  }
}

/** A page of the log, the newest first. */
export async function findDecisions(sql: Sql, query: DecisionQuery): Promise<FoundDecision[]> {
  const { workspaceId, start, end, codes, refused, from, readable, limit } = query;
  const wanted: RawBuilder<unknown>[] = [raw`workspace_id = ${workspaceId}`];
  const equal = (column: string, value: string | undefined) => {
    // The second condition lets the planner use the index, which has no rows without a value.
    if (value !== undefined) wanted.push(raw`${raw.ref(column)} = ${value} and ${raw.ref(column)} <> ''`);
  };
  equal("key_id", query.keyId);
  equal("api_id", query.apiId);
  equal("identity_id", query.identityId);
  equal("namespace_id", query.namespaceId);
  equal("request_id", query.requestId);
  if (start !== undefined) wanted.push(raw`at >= ${start}`);
  if (end !== undefined) wanted.push(raw`at < ${end}`);
  if (codes !== undefined) wanted.push(raw`code in ${sql.dialect.values.list(codes)}`);
  if (refused) wanted.push(raw`code not in ${sql.dialect.values.list(acceptedCodes)}`);
  if (readable !== undefined) {
    const { apiIds, namespaceIds } = readable;
    const apis = apiIds === undefined ? raw`namespace_id = ''` : raw`api_id in ${sql.dialect.values.list(apiIds)}`;
    const namespaces =
      namespaceIds === undefined
        ? raw`namespace_id <> ''`
        : raw`namespace_id in ${sql.dialect.values.list(namespaceIds)}`;
    wanted.push(raw`(${apis} or ${namespaces})`);
  }
  if (from !== undefined) wanted.push(raw`(at < ${from.at} or (at = ${from.at} and id <= ${from.id}))`);
  const { rows } = await raw<{ id: string; at: number | string; answer: string }>`
    select id, at, answer from analytics_decisions where ${raw.join(wanted, raw` and `)}
    order by at desc, id desc limit ${limit}`.execute(sql.db);
  return rows.map(({ id, at, answer }) => ({ id, at: Number(at), answer }));
}

/** Deletes some decisions that are too old, or too many of one workspace. Returns their number. */
export async function pruneDecisions(sql: Sql, now: number, { life, rowsPerWorkspace }: LogBounds): Promise<number> {
  const oldest = now - life;
  const { rows } = await raw<{ workspace_id: string; rows: number | string }>`
    select workspace_id, "rows" from analytics_decision_counts as c
    where "rows" > ${rowsPerWorkspace} or exists (
      select 1 from analytics_decisions as d where d.workspace_id = c.workspace_id and d.at < ${oldest})
    order by workspace_id limit 1`.execute(sql.db);
  const [found] = rows;
  if (found === undefined) return 0;
  const workspaceId = found.workspace_id;
  const surplus = Math.max(0, Number(found.rows) - rowsPerWorkspace);
  const some =
    surplus > 0
      ? raw`order by at, id limit ${Math.min(surplus, ROWS_PER_PRUNING)}`
      : raw`and at < ${oldest} order by at, id limit ${ROWS_PER_PRUNING}`;
  const { numAffectedRows } = await raw`
    delete from analytics_decisions where workspace_id = ${workspaceId} and (at, id) in (
      select at, id from analytics_decisions where workspace_id = ${workspaceId} ${some})`.execute(sql.db);
  const deleted = Number(numAffectedRows ?? 0);
  await raw`update analytics_decision_counts set "rows" = "rows" - ${deleted} where workspace_id = ${workspaceId}`.execute(
    sql.db,
  );
  return deleted;
}
