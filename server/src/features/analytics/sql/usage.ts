import { sql as raw } from "kysely";
import type { Sql } from "../../../platform/store/store.ts";
import type { Usage, UsageLevel } from "../batch.ts";
import { levels } from "../levels.ts";
import { type Top, type TopQuery, topFrom } from "../rollups.ts";
import { keptSum } from "../sums.ts";
import { rowsPerStatement } from "./rows-per-statement.ts";
import { type RankedCount, usageInRuns } from "./runs.ts";
import { usageTables } from "./schema.ts";
import { bucketStart, unmergedRows } from "./segments.ts";
import { inSnapshot } from "./snapshot.ts";

/** Rows of a workspace that are not merged yet and that a ranking examines, for each merged one. They are in few pages. */
const UNMERGED_PER_EXAMINED = 4;
/** The same of runs, whose rows are added up without SQL, and of the sums, which bound the memory. */
const IN_RUNS_PER_EXAMINED = 8;
const SUMS_PER_EXAMINED = 2;

/** Rows per statement: some tenths of a millisecond of work, so that other statements do not wait long. */
const ROWS_PER_STATEMENT = 40;

const columns = [
  ...(["time", "workspace_id", "key_id", "identity_id", "outcome", "api_id", "count", "credits_spent"] as const),
];
const columnTypes = ["bigint", "text", "text", "text", "text", "text", "bigint", "bigint"] as const;
const addUp = `on conflict (time, workspace_id, key_id, identity_id, outcome) do update set
  count = ${keptSum("t.count + excluded.count")},
  credits_spent = ${keptSum("t.credits_spent + excluded.credits_spent")}`;

/** Adds usage in the order of its primary key. */
export async function addUsage(sql: Sql, level: UsageLevel, rows: readonly Usage[]): Promise<void> {
  const insert = `insert into ${usageTables[level]} as t (${columns.join(", ")})`;
  const perStatement = rowsPerStatement(sql, ROWS_PER_STATEMENT);
  for (let i = 0; i < rows.length; i += perStatement) {
    const values = rows
      .slice(i, i + perStatement)
      .map(({ time, workspaceId, keyId, identityId, outcome, apiId, count, creditsSpent }) => [
        time,
        workspaceId,
        keyId,
        identityId,
        outcome,
        apiId,
        count,
        creditsSpent,
      ]);
    await sql.db.executeQuery(sql.dialect.values.insertion(insert, columnTypes, values, addUp));
  }
}

/** The keys or identities with the most verifications. Examines a limited number of rows, the newest buckets first. */
export function top(sql: Sql, query: TopQuery): Promise<Top> {
  return inSnapshot(sql, async () => {
    if (!sql.dialect.isEmbedded) return rank(sql, query, [], true);
    const bounds = {
      rowsMax: IN_RUNS_PER_EXAMINED * query.examinedMax,
      countsMax: SUMS_PER_EXAMINED * query.examinedMax,
    };
    const { counts, isComplete } = await usageInRuns(sql, query, bounds);
    return rank(sql, query, counts, isComplete);
  });
}

const rankedTypes = { id: "text", outcome: "text", count: "bigint", credits: "bigint" } as const;

async function rank(sql: Sql, query: TopQuery, inRuns: RankedCount[], isComplete: boolean): Promise<Top> {
  const { level, start, end, workspaceId, apiId, limit, examinedMax } = query;
  const unmergedMax = UNMERGED_PER_EXAMINED * examinedMax;
  const times: number[] = [];
  for (let time = end - levels[level]; time >= start; time -= levels[level]) times.push(time);
  const id = raw.ref(query.by === "key" ? "key_id" : "identity_id");
  const ofApi = apiId === undefined ? raw`` : raw`and api_id = ${apiId}`;
  // Each bucket is one look-up in the primary key, in this order. The limits keep the planner from another order.
  const ofWorkspace = { column: "workspace_id", equal: workspaceId };
  const newest = sql.dialect.values.lookUps(usageTables[level], "time", times, ofWorkspace, examinedMax);
  const ofRuns = raw`union all select id, outcome, count, credits from ${sql.dialect.values.rows(rankedTypes, inRuns)}`;
  const { rows } = await raw<{ id: string; outcome: string; counts: number | string; credits: number | string }>`
    with examined as materialized (
      select time, key_id, identity_id, api_id, outcome, count, credits_spent from ${newest}
      limit ${examinedMax}
    ), unmerged as materialized (
      select ${bucketStart(level)} as time, r.subject as key_id, r.identity_id, r.api_id, r.outcome, r.count,
        r.amount as credits_spent
      from ${unmergedRows(query)} and r.api_id <> '' limit ${unmergedMax}
    ), matching as materialized (
      select id, outcome, ${raw.raw(keptSum("sum(count)"))} as counts, ${raw.raw(keptSum("sum(credits)"))} as credits from (
        select ${id} as id, outcome, count, credits_spent as credits
        from (select * from examined union all select * from unmerged) as counted where ${id} <> '' ${ofApi}
        ${inRuns.length > 0 ? ofRuns : raw``}
      ) as counted group by id, outcome
    ), first as (
      select id from matching group by id order by sum(counts) desc, id limit ${limit}
    )
    select id, outcome, counts, credits from matching where id in (select id from first)
    union all select '', '', count(*), coalesce(min(time), 0) from examined
    union all select '', '', count(*), 0 from unmerged`.execute(sql.db);
  const [examined, unmerged] = rows.splice(-2);
  // Rows of any bucket may be missing.
  if (!isComplete || Number(unmerged?.counts) >= unmergedMax) {
    return topFrom(query, { counts: rows, examined: examinedMax, oldest: end - levels[level] });
  }
  return topFrom(query, { counts: rows, examined: examined!.counts, oldest: examined!.credits });
}
