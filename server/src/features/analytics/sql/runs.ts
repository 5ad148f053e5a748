import { type Kysely, sql as raw } from "kysely";
import type { Sql } from "../../../platform/store/store.ts";
import type { MinuteCount } from "../batch.ts";
import { levels } from "../levels.ts";
import type { CountsQuery, TopQuery } from "../rollups.ts";
import { sumOf } from "../sums.ts";
import { Block, blockText } from "./block.ts";
import { compare } from "./compare.ts";
import { inKeyOrder } from "./key-order.ts";
import type { MergeOptions } from "./merge-plan.ts";
import { isAfter, placeOf, START } from "./place.ts";
import { RunReader } from "./run-reader.ts";
import type { AnalyticsSchema } from "./schema.ts";
import { addSegment, addWriteTo } from "./segments.ts";

/** Blocks that a ranking reads at a time. */
const BLOCKS_PER_READ = 100;

/** Adds the counts of one write as a run: as a segment, but in blocks, which are a statement for many rows. */
export async function addRun(
  sql: Sql,
  counts: readonly MinuteCount[],
  { rowsPerBlock }: Pick<MergeOptions, "rowsPerBlock">,
): Promise<void> {
  const run = await addWriteTo(sql, "analytics_runs", counts);
  for (const block of blocksOf(inKeyOrder(counts), rowsPerBlock)) {
    const last = block.at(-1);
    if (last === undefined) continue;
    await raw`
      insert into analytics_run_blocks (run, workspace_id, last_subject, data)
      values (${run}, ${last.workspaceId}, ${last.subject}, ${blockText(block)})`.execute(sql.db);
  }
}

/** The counts in blocks: each of one workspace, with all rows of its subjects. */
function blocksOf(sorted: readonly MinuteCount[], rows: number): MinuteCount[][] {
  const blocks: MinuteCount[][] = [];
  let block: MinuteCount[] = [];
  let last: MinuteCount | undefined;
  for (const one of sorted) {
    const isFull = block.length >= rows && one.subject !== last?.subject;
    if (isFull || one.workspaceId !== last?.workspaceId) {
      block = [];
      blocks.push(block);
    }
    block.push(one);
    last = one;
  }
  return blocks;
}

/** A count of a bucket. */
export interface BucketCount {
  readonly subject: string;
  readonly time: number;
  readonly outcome: string;
  readonly count: number;
  readonly amount: number;
}

/** The counts of subjects that runs have and the tables do not, in a snapshot in which the caller reads the tables too. */
export async function countsInRuns(sql: Sql, query: CountsQuery): Promise<BucketCount[]> {
  const { workspaceId, subjects, level, start, end } = query;
  // In their order, so that those of one block follow each other.
  const asked = sql.dialect.values.rows(
    { subject: "text" },
    subjects.toSorted(compare).map((subject) => ({ subject })),
  );
  const { rows } = await raw<{ subject: string; merged_to: string | null; data: string }>`
    select input.subject, s.merged_to, b.data
    from analytics_runs as s cross join ${asked} cross join analytics_run_blocks as b
    where s.last_minute >= ${start} and s.first_minute < ${end} and b.run = s.id and b.workspace_id = ${workspaceId}
      and b.last_subject = (
        select n.last_subject from analytics_run_blocks as n
        where n.run = s.id and n.workspace_id = ${workspaceId} and n.last_subject >= input.subject
        order by n.last_subject limit 1)`.execute(sql.db);
  const found: BucketCount[] = [];
  let [block, text] = [undefined as Block | undefined, ""];
  for (const { subject, merged_to, data } of rows) {
    // A block is parsed only if it has the subject.
    if (!data.includes(JSON.stringify(subject)) || !isAfter(workspaceId, subject, placeOf(merged_to ?? START)))
      continue;
    if (block === undefined || text !== data) [block, text] = [new Block(workspaceId, data), data];
    const first = block.subjects.indexOf(subject);
    for (let row = first; first >= 0 && block.subjects[row] === subject; row++) {
      const { time, outcome, count, amount } = block.count(row);
      if (time < start || time >= end) continue;
      found.push({ subject, time: time - (time % levels[level]), outcome, count, amount });
    }
  }
  return found;
}

/** The verifications of a key or an identity with one outcome. */
export interface RankedCount {
  readonly id: string;
  readonly outcome: string;
  count: number;
  credits: number;
}

/**
 * The verifications by key or identity that runs have and the tables do not, in a snapshot in which the caller reads the
 * tables too. Reads at most `rowsMax` rows of keys, and returns at most `countsMax` counts.
 */
export async function usageInRuns(
  sql: Sql,
  query: TopQuery,
  { rowsMax, countsMax }: { rowsMax: number; countsMax: number },
): Promise<{ counts: RankedCount[]; isComplete: boolean }> {
  const { workspaceId, by, apiId: ofApi, start, end } = query;
  const sums = new RankedSums();
  let examined = 0;
  const runs = await tablesOf(sql)
    .selectFrom("analytics_runs")
    .select(["id", "merged_to"])
    .where("last_minute", ">=", start)
    .where("first_minute", "<", end)
    .execute();
  for (const { id: run, merged_to } of runs) {
    const place = placeOf(merged_to ?? START);
    const reader = new RunReader(run, place, workspaceId);
    while (!reader.isAtEnd) {
      for (const one of await reader.next(sql, BLOCKS_PER_READ)) {
        const { subject, apiId, identityId, outcome, count, amount, time } = one;
        if (apiId === "" || time < start || time >= end) continue;
        if (++examined >= rowsMax || sums.all.length >= countsMax) return { counts: sums.all, isComplete: false };
        const id = by === "key" ? subject : identityId;
        if (id !== "" && (ofApi === undefined || apiId === ofApi)) sums.add(id, outcome, count, amount);
      }
    }
  }
  return { counts: sums.all, isComplete: true };
}

class RankedSums {
  readonly all: RankedCount[] = [];
  readonly #byOutcome = new Map<string, Map<string, RankedCount>>();

  add(id: string, outcome: string, count: number, credits: number): void {
    let byId = this.#byOutcome.get(outcome);
    if (byId === undefined) {
      byId = new Map();
      this.#byOutcome.set(outcome, byId);
    }
    const known = byId.get(id);
    if (known === undefined) {
      const first = { id, outcome, count, credits };
      byId.set(id, first);
      this.all.push(first);
      return;
    }
    known.count = sumOf(known.count, count);
    known.credits = sumOf(known.credits, credits);
  }
}

/**
 * Turns the runs of a database that has none of its own into segments: a store was moved to it from an embedded database. In the
 * transaction of the migrations, before this node reads.
 */
export async function unpackRuns(sql: Sql): Promise<void> {
  const db = tablesOf(sql);
  const runs = await db.selectFrom("analytics_runs").select(["id", "merged_to"]).execute();
  for (const { id, merged_to } of runs) {
    const reader = new RunReader(Number(id), placeOf(merged_to ?? START));
    const counts: MinuteCount[] = [];
    while (!reader.isAtEnd) for (const one of await reader.next(sql, BLOCKS_PER_READ)) counts.push(one);
    if (counts.length > 0) await addSegment(sql, counts);
    await db.deleteFrom("analytics_run_blocks").where("run", "=", id).execute();
    await db.deleteFrom("analytics_runs").where("id", "=", id).execute();
  }
}

function tablesOf({ db }: Sql): Kysely<AnalyticsSchema> {
  return db as unknown as Kysely<AnalyticsSchema>;
}
