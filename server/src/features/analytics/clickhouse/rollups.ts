import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { digest } from "../../../../../engine/src/crypto/digest.ts";
import { StoreUnavailable } from "../../../../../engine/src/errors/store-unavailable.ts";
import {
  type Batch,
  bounded,
  bucketOf,
  minuteCounts,
  OVERFLOW,
  type Rollup,
  readBatch,
  rollUp,
  type Usage,
  usageLevels,
  usageOf,
} from "../batch.ts";
import { acceptedCodes } from "../decision-log.ts";
import { type Level, levelNames, levels, oldestKept, type Retention } from "../levels.ts";
import {
  type CountsQuery,
  countsFrom,
  type DecisionQuery,
  type FoundDecision,
  type LogBounds,
  type Pruned,
  type Rollups,
  type StatsQuery,
  type StatsRows,
  type SubjectCounts,
  statsText,
  TOP_MAX,
  type Top,
  type TopQuery,
  topFrom,
} from "../rollups.ts";
import { decisionId } from "../sql/decisions.ts";
import { migrateClickHouse } from "./migrations.ts";

/** Timeout of a request in milliseconds. */
const REQUEST_TIMEOUT = 30_000;

/** Opens rollups in ClickHouse at a URL with user, password and database. */
export function openClickHouse(url: string, retention: Retention, log: LogBounds): Promise<Rollups> {
  const client = createClient({
    url,
    application: "latchkey",
    request_timeout: REQUEST_TIMEOUT,
    // What fails is logged by its caller, once.
    log: { level: ClickHouseLogLevel.OFF },
  });
  return openClickHouseRollups(client, retention, log);
}

/**
 * Opens rollups through a client, and creates their tables.
 *
 * @throws {StoreUnavailable}
 */
export async function openClickHouseRollups(
  client: ClickHouseClient,
  retention: Retention,
  log: LogBounds,
): Promise<Rollups> {
  try {
    await available(() => migrateClickHouse(client));
  } catch (error) {
    await client.close();
    throw error;
  }
  return {
    write: (batches) =>
      available(async () => {
        for (const text of batches) await write(client, readBatch(text));
      }),
    stats: (query) => available(() => stats(client, query)),
    counts: (query) => available(() => counts(client, query)),
    top: (query) => available(() => topUsage(client, query)),
    decisions: (query) => available(() => decisions(client, query)),
    // The engine merges by itself.
    merge: async () => false,
    prune: (now) => available(() => prune(client, now, retention, log)),
    close: () => client.close(),
  };
}

async function available<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // Errors of the server have a type. All others are connection errors.
    if ((error as Error).name === "NewerSchema" || (error as { type?: string }).type !== undefined) throw error;
    throw new StoreUnavailable("ClickHouse cannot be reached", { cause: error });
  }
}

/**
 * Writes a batch as one insert per table, with a token. If a batch is sent again after a lost response, the engine drops
 * the inserts that it has.
 */
async function write(client: ClickHouseClient, batch: Batch): Promise<void> {
  const counts = minuteCounts([batch]);
  const rows = rollUp([batch], counts);
  const values: object[] = [];
  for (const level of levelNames) {
    for (const { latencyUs, ...row } of bounded(rows[level], await partsBefore(client, level, rows[level]))) {
      values.push({ level, ...row, latency_us: latencyUs });
    }
  }
  await insertOnce(client, "latchkey_rollups", batch, values);
  const usage = usageOf(counts);
  await insertOnce(
    client,
    "latchkey_usage",
    batch,
    usageLevels.flatMap((level) => usage[level].map((row) => ({ level, ...usageColumns(row) }))),
  );
  await insertOnce(client, "latchkey_decisions", batch, decisionRows(batch));
}

function usageColumns({ time, workspaceId, keyId, identityId, outcome, apiId, count, creditsSpent }: Usage) {
  const ids = { workspace_id: workspaceId, key_id: keyId, identity_id: identityId, api_id: apiId };
  return { time, ...ids, outcome, count, credits_spent: creditsSpent };
}

function decisionRows(batch: Batch): object[] {
  return batch.decisions.map(
    ([at, workspace_id, code, key_id, api_id, identity_id, namespace_id, request_id, answer], i) => {
      const ids = { workspace_id, key_id, api_id, identity_id, namespace_id, request_id };
      return { id: decisionId(batch, i), at, code, ...ids, answer: JSON.stringify(answer) };
    },
  );
}

async function insertOnce(
  client: ClickHouseClient,
  table: string,
  batch: Batch,
  values: readonly object[],
): Promise<void> {
  if (values.length === 0) return;
  await client.insert({
    table,
    values,
    format: "JSONEachRow",
    clickhouse_settings: {
      async_insert: 0,
      insert_deduplicate: 1,
      insert_deduplication_token: `${batch.recorder}:${batch.sequence}`,
    },
  });
}

/** Reads the existing parts of all buckets that the rows add parts to. */
async function partsBefore(
  client: ClickHouseClient,
  level: Level,
  rows: readonly Rollup[],
): Promise<Map<string, Set<string>>> {
  const has = new Map<string, Set<string>>();
  const tagged = rows.filter(({ part }) => part !== "");
  if (tagged.length === 0) return has;
  for (const row of tagged) has.set(bucketOf(row), new Set());
  const found = await select<{ time: string; subject: string; parts: string[] }>(
    client,
    `select time, subject, groupUniqArray(part) as parts from latchkey_rollups
     where level = {level:String} and subject in {subjects:Array(String)} and time in {times:Array(Int64)}
       and part > '' and part < {overflow:String}
     group by time, subject`,
    {
      level,
      subjects: [...new Set(tagged.map(({ subject }) => subject))],
      times: [...new Set(tagged.map(({ time }) => time))],
      overflow: OVERFLOW,
    },
  );
  for (const { time, subject, parts } of found) {
    has.set(bucketOf({ time: Number(time), subject }), new Set(parts));
  }
  return has;
}

/** Deletes whole hours, because every deletion in ClickHouse rewrites data. */
async function prune(client: ClickHouseClient, now: number, retention: Retention, log: LogBounds): Promise<Pruned> {
  const expiring = [
    ...levelNames.map((level) => ["latchkey_rollups", level] as const),
    ...usageLevels.map((level) => ["latchkey_usage", level] as const),
  ];
  let rows = await pruneDecisions(client, now, log);
  for (const [table, level] of expiring) {
    const oldest = oldestKept(level, retention, now);
    const until = oldest - (oldest % levels.hour);
    const isOld = `from ${table} where level = {level:String} and time < {until:Int64}`;
    const [old] = await select<{ rows: string }>(client, `select count() as rows ${isOld}`, { level, until });
    if (Number(old!.rows) === 0) continue;
    await client.command({ query: `delete ${isOld}`, query_params: { level, until } });
    rows += Number(old!.rows);
  }
  return { rows, more: false };
}

/** Deletes whole hours of old decisions, and the oldest ones of workspaces with too many, at least a tenth of the bound. */
async function pruneDecisions(
  client: ClickHouseClient,
  now: number,
  { life, rowsPerWorkspace }: LogBounds,
): Promise<number> {
  let deleted = 0;
  const remove = async (where: string, query_params: Record<string, unknown>) => {
    const [found] = await select<{ rows: string }>(
      client,
      `select count() as rows from latchkey_decisions where ${where}`,
      query_params,
    );
    const rows = Number(found?.rows ?? 0);
    if (rows === 0) return;
    await client.command({ query: `delete from latchkey_decisions where ${where}`, query_params });
    deleted += rows;
  };
  const oldest = now - life;
  await remove("at < {until:Int64}", { until: oldest - (oldest % levels.hour) });
  const full = await select<{ workspace_id: string }>(
    client,
    "select workspace_id from latchkey_decisions group by workspace_id having count() > {most:UInt64}",
    { most: Math.ceil(rowsPerWorkspace * 1.1) },
  );
  for (const { workspace_id: workspace } of full) {
    const [first] = await select<{ at: string; id: string }>(
      client,
      `select at, id from latchkey_decisions where workspace_id = {workspace:String}
       order by at desc, id desc limit 1 offset {rows:UInt64}`,
      { workspace, rows: rowsPerWorkspace },
    );
    if (first === undefined) continue;
    const before = "(at < {at:Int64} or (at = {at:Int64} and id <= {id:String}))";
    await remove(`workspace_id = {workspace:String} and ${before}`, { workspace, at: first.at, id: first.id });
  }
  return deleted;
}

async function decisions(client: ClickHouseClient, query: DecisionQuery): Promise<FoundDecision[]> {
  const { workspaceId, start, end, codes, refused, from, readable, limit } = query;
  const wanted = ["workspace_id = {workspaceId:String}"];
  for (const [column, name] of [
    ["key_id", "keyId"],
    ["api_id", "apiId"],
    ["identity_id", "identityId"],
    ["namespace_id", "namespaceId"],
    ["request_id", "requestId"],
  ] as const) {
    if (query[name] !== undefined) wanted.push(`${column} = {${name}:String} and ${column} != ''`);
  }
  if (start !== undefined) wanted.push("at >= {start:Int64}");
  if (end !== undefined) wanted.push("at < {end:Int64}");
  if (codes !== undefined) wanted.push("code in {codes:Array(String)}");
  if (refused) wanted.push("code not in {accepted:Array(String)}");
  if (readable !== undefined) {
    const apis = readable.apiIds === undefined ? "namespace_id = ''" : "api_id in {apiIds:Array(String)}";
    const namespaces =
      readable.namespaceIds === undefined ? "namespace_id != ''" : "namespace_id in {namespaceIds:Array(String)}";
    wanted.push(`(${apis} or ${namespaces})`);
  }
  if (from !== undefined) wanted.push("(at < {at:Int64} or (at = {at:Int64} and id <= {id:String}))");
  const { keyId, apiId, identityId, namespaceId, requestId } = query;
  const ids = { workspaceId, keyId, apiId, identityId, namespaceId, requestId };
  const found = await select<{ id: string; at: string; answer: string }>(
    client,
    `select id, at, answer from latchkey_decisions where ${wanted.join(" and ")}
     order by at desc, id desc limit {limit:UInt32}`,
    { ...ids, start, end, codes, accepted: acceptedCodes, ...readable, ...from, limit },
  );
  return found.map(({ id, at, answer }) => ({ id, at: Number(at), answer }));
}

async function stats(client: ClickHouseClient, query: StatsQuery): Promise<string> {
  const [series, top, overflow] = await Promise.all([
    seriesOf(client, query),
    topOf(client, query),
    overflowOf(client, query),
  ]);
  return statsText(query, { series, top, overflow });
}

const IN_RANGE = `subject = {subject:String} and level = {level:String} and time >= {start:Int64} and time < {end:Int64}`;
const IN_PARTS = "part > '' and part < {overflow:String}";
const CARRIES_ALL = "hasAll(JSONExtract(label, 'Array(String)'), {tags:Array(String)})";

function parametersOf({ subject, level, start, end, tags, identifier }: StatsQuery): Record<string, unknown> {
  const part = identifier === undefined ? "" : digest(identifier);
  return { subject, level, start, end, tags, part, overflow: OVERFLOW, top: TOP_MAX };
}

async function seriesOf(client: ClickHouseClient, query: StatsQuery): Promise<StatsRows["series"]> {
  const wanted = query.tags.length > 0 ? `${IN_PARTS} and ${CARRIES_ALL}` : "part = {part:String}";
  return select<Record<"time" | "outcome" | "counts" | "amounts", string>>(
    client,
    `select time, outcome, sum(count) as counts, sum(amount) as amounts from latchkey_rollups
     where ${IN_RANGE} and ${wanted} group by time, outcome`,
    parametersOf(query),
  );
}

async function topOf(client: ClickHouseClient, query: StatsQuery): Promise<StatsRows["top"]> {
  const isVerifications = query.about === "verifications";
  const [name, good, having, order] = isVerifications
    ? ["arrayJoin(JSONExtract(label, 'Array(String)'))", "VALID", "", "total"]
    : ["label", "DENIED", "having good > 0", "good"];
  const filters = [IN_RANGE, IN_PARTS];
  if (query.tags.length > 0) filters.push(CARRIES_ALL);
  if (query.identifier !== undefined) filters.push("part = {part:String}");
  return select<Record<"name" | "total" | "good", string>>(
    client,
    `select ${name} as name, sum(count) as total, sumIf(count, outcome = '${good}') as good from latchkey_rollups
     where ${filters.join(" and ")} group by name ${having} order by ${order} desc, name limit {top:UInt32}`,
    parametersOf(query),
  );
}

async function overflowOf(client: ClickHouseClient, query: StatsQuery): Promise<StatsRows["overflow"]> {
  const [found] = await select<{ counts: string }>(
    client,
    `select sum(count) as counts from latchkey_rollups where ${IN_RANGE} and part = {overflow:String}`,
    parametersOf(query),
  );
  return found?.counts ?? null;
}

async function counts(
  client: ClickHouseClient,
  { subjects, level, start, end }: CountsQuery,
): Promise<SubjectCounts[]> {
  const rows = await select<Record<"subject" | "time" | "total" | "valid", string>>(
    client,
    `select subject, time, sum(count) as total, sumIf(count, outcome = 'VALID') as valid from latchkey_rollups
     where subject in {subjects:Array(String)} and level = {level:String} and time >= {start:Int64} and time < {end:Int64}
       and part = '' group by subject, time`,
    { subjects, level, start, end },
  );
  return countsFrom(rows);
}

async function topUsage(client: ClickHouseClient, query: TopQuery): Promise<Top> {
  const { by, workspaceId, apiId, level, start, end, limit, examinedMax } = query;
  const id = by === "key" ? "key_id" : "identity_id";
  const examined = `select time, key_id, identity_id, api_id, outcome, count, credits_spent from latchkey_usage
    where workspace_id = {workspaceId:String} and level = {level:String} and time >= {start:Int64} and time < {end:Int64}
    order by time desc limit {examinedMax:UInt32}`;
  const matching = `select ${id} as id, outcome, sum(count) as counts, sum(credits_spent) as credits from (${examined})
    where ${id} != '' ${apiId === undefined ? "" : "and api_id = {apiId:String}"} group by id, outcome`;
  const parameters = { workspaceId, apiId, level, start, end, limit, examinedMax };
  const [counts, [bounds]] = await Promise.all([
    select<Record<"id" | "outcome" | "counts" | "credits", string>>(
      client,
      `select id, outcome, counts, credits from (${matching})
       where id in (select id from (${matching}) group by id order by sum(counts) desc, id limit {limit:UInt32})`,
      parameters,
    ),
    select<Record<"examined" | "oldest", string>>(
      client,
      `select count() as examined, min(time) as oldest from (${examined})`,
      parameters,
    ),
  ]);
  return topFrom(query, { counts, examined: bounds?.examined ?? 0, oldest: bounds?.oldest ?? 0 });
}

async function select<Row>(
  client: ClickHouseClient,
  query: string,
  query_params: Record<string, unknown>,
): Promise<Row[]> {
  return (await client.query({ query, query_params, format: "JSONEachRow" })).json<Row>();
}
