import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { digest } from "../../../../../engine/src/crypto/digest.ts";
import { StoreUnavailable } from "../../../../../engine/src/errors/store-unavailable.ts";
import {
  type Batch,
  bounded,
  bucketOf,
  OVERFLOW,
  type Rollup,
  rollUp,
  type Usage,
  usageLevels,
  usageOf,
} from "../batch.ts";
import { type Level, levelNames, levels, oldestKept, type Retention } from "../levels.ts";
import {
  type Pruned,
  type Rollups,
  type StatsQuery,
  type StatsRows,
  statsText,
  TOP_MAX,
  type Top,
  type TopQuery,
  topFrom,
} from "../rollups.ts";
import { migrateClickHouse } from "./migrations.ts";

/** Timeout of a request in milliseconds. */
const REQUEST_TIMEOUT = 30_000;

/** Opens rollups in ClickHouse at a URL with user, password and database. */
export function openClickHouse(url: string, retention: Retention): Promise<Rollups> {
  const client = createClient({
    url,
    application: "latchkey",
    request_timeout: REQUEST_TIMEOUT,
    // What fails is logged by its caller, once.
    log: { level: ClickHouseLogLevel.OFF },
  });
  return openClickHouseRollups(client, retention);
}

/**
 * Opens rollups through a client, and creates their tables.
 *
 * @throws {StoreUnavailable}
 */
export async function openClickHouseRollups(client: ClickHouseClient, retention: Retention): Promise<Rollups> {
  try {
    await available(() => migrateClickHouse(client));
  } catch (error) {
    await client.close();
    throw error;
  }
  return {
    write: (batches) =>
      available(async () => {
        for (const text of batches) await write(client, JSON.parse(text) as Batch);
      }),
    stats: (query) => available(() => stats(client, query)),
    top: (query) => available(() => topUsage(client, query)),
    prune: (now) => available(() => prune(client, now, retention)),
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
  const rows = rollUp([batch]);
  const values: object[] = [];
  for (const level of levelNames) {
    for (const { latencyUs, ...row } of bounded(rows[level], await partsBefore(client, level, rows[level]))) {
      values.push({ level, ...row, latency_us: latencyUs });
    }
  }
  await insertOnce(client, "latchkey_rollups", batch, values);
  const usage = usageOf([batch]);
  await insertOnce(
    client,
    "latchkey_usage",
    batch,
    usageLevels.flatMap((level) => usage[level].map((row) => ({ level, ...usageColumns(row) }))),
  );
}

function usageColumns({ time, workspaceId, keyId, identityId, outcome, apiId, count, creditsSpent }: Usage) {
  const ids = { workspace_id: workspaceId, key_id: keyId, identity_id: identityId, api_id: apiId };
  return { time, ...ids, outcome, count, credits_spent: creditsSpent };
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
async function prune(client: ClickHouseClient, now: number, retention: Retention): Promise<Pruned> {
  const expiring = [
    ...levelNames.map((level) => ["latchkey_rollups", level] as const),
    ...usageLevels.map((level) => ["latchkey_usage", level] as const),
  ];
  let rows = 0;
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
