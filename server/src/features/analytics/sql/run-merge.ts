import { type Kysely, sql as raw } from "kysely";
import type { Sql } from "../../../platform/store/store.ts";
import type { MinuteCount } from "../batch.ts";
import { keptSum } from "../sums.ts";
import { type MergeOptions, MergePlan } from "./merge-plan.ts";
import { type InsertedColumn, insertPacked } from "./packed-insertion.ts";
import { isAfter, type Place, placeOf, START, textOf } from "./place.ts";
import { RunReader } from "./run-reader.ts";
import { type AnalyticsSchema, rollupTables } from "./schema.ts";
import { addGrouped, GROUPED, groupedTypes } from "./segments.ts";
import { addedInOrder, mergeSorted } from "./subject-sums.ts";

const figures: readonly InsertedColumn[] = [
  ["count", "count"],
  ["amount", "amount"],
  ["latency_us", "latencyUs"],
];
const minuteColumns: readonly InsertedColumn[] = [
  ["time", "time"],
  ["subject", "subject"],
  ["part", { sql: "''" }],
  ["outcome", "outcome"],
  ["label", { sql: "''" }],
  ...figures,
];
const minuteTail = `on conflict (time, subject, part, outcome) do update set ${["count", "amount", "latency_us"]
  .map((column) => `${column} = ${keptSum(`${rollupTables.minute}.${column} + excluded.${column}`)}`)
  .join(", ")}`;
const groupedColumns: readonly InsertedColumn[] = [
  ["time", "time"],
  ["workspace_id", "workspaceId"],
  ["subject", "subject"],
  ["identity_id", "identityId"],
  ["outcome", "outcome"],
  ["api_id", "apiId"],
  ...figures,
];

/** What was read of a run and is not merged yet: counts from `next` on. */
interface Waiting {
  readonly reader: RunReader;
  counts: MinuteCount[];
}

/**
 * Moves the counts of runs into the tables, in the order of their subjects: many rows of a page at a time. They are added up
 * before, so that each row of the tables is written once in a merge.
 */
export class RunMerge {
  readonly #options: MergeOptions;
  readonly #plan: MergePlan;
  /** Blocks are read once: what they have beyond a step waits for the next one, which begins at `#place`. */
  readonly #waiting = new Map<number, Waiting>();
  #place: string | undefined;

  constructor(options: MergeOptions) {
    this.#options = options;
    this.#plan = MergePlan.ofRuns(options);
  }

  /**
   * Does a step in a transaction, and returns whether there are more. A count is in a run or in the tables, in every snapshot of
   * the database.
   */
  async step(sql: Sql, now: number): Promise<boolean> {
    const db = tablesOf(sql);
    const all = await db.selectFrom("analytics_runs").selectAll().execute();
    const begun = all.filter(({ merged_to }) => merged_to !== null);
    if (begun.length === 0 && (all.length === 0 || !this.#plan.isDue(all, now))) return false;
    // The runs of a merge are chosen at its beginning, so that it ends although new ones are added.
    const ids = (begun.length === 0 ? all : begun).map(({ id }) => id);
    const from = begun[0]?.merged_to ?? START;
    // After a transaction that was rolled back, or a restart, the merge is elsewhere.
    if (from !== this.#place) this.#forget();
    const until = await this.#read(sql, ids, placeOf(from));
    await this.#write(sql, this.#take(until));
    if (until === undefined) {
      await db.deleteFrom("analytics_run_blocks").where("run", "in", ids).execute();
      await db.deleteFrom("analytics_runs").where("id", "in", ids).execute();
      this.#plan.end();
      this.#forget();
      return false;
    }
    await raw`
      delete from analytics_run_blocks
      where run in (${raw.join(ids)}) and (workspace_id, last_subject) <= (${until[0]}, ${until[1]})`.execute(sql.db);
    this.#place = textOf(until);
    await db.updateTable("analytics_runs").set({ merged_to: this.#place }).where("id", "in", ids).execute();
    return true;
  }

  #forget(): void {
    this.#waiting.clear();
    this.#place = undefined;
  }

  /** Reads enough of each run for a step. Returns up to where all have been read; undefined if all are at their end. */
  async #read(sql: Sql, ids: readonly number[], from: Place): Promise<Place | undefined> {
    const { rowsPerStep, rowsPerBlock } = this.#options;
    const rowsPerRun = Math.max(1, Math.floor(rowsPerStep / ids.length));
    let until: Place | undefined;
    for (const id of ids) {
      let waiting = this.#waiting.get(id);
      if (waiting === undefined) {
        waiting = { reader: new RunReader(id, from), counts: [] };
        this.#waiting.set(id, waiting);
      }
      const { reader, counts } = waiting;
      while (!reader.isAtEnd && counts.length < rowsPerRun) {
        const blocks = Math.ceil((rowsPerRun - counts.length) / rowsPerBlock);
        for (const one of await reader.next(sql, blocks)) counts.push(one);
      }
      const { isAtEnd, last } = reader;
      if (!isAtEnd && (until === undefined || isAfter(until[0], until[1], last))) until = last;
    }
    return until;
  }

  /** Takes what was read of each run up to a place, or all of it. */
  #take(until: Place | undefined): (readonly MinuteCount[])[] {
    const taken: (readonly MinuteCount[])[] = [];
    for (const waiting of this.#waiting.values()) {
      const { counts } = waiting;
      let end = counts.length;
      while (until !== undefined && end > 0) {
        const last = counts[end - 1];
        if (last === undefined || !isAfter(last.workspaceId, last.subject, until)) break;
        end--;
      }
      taken.push(counts.slice(0, end));
      waiting.counts = counts.slice(end);
    }
    return taken;
  }

  async #write(sql: Sql, lists: readonly (readonly MinuteCount[])[]): Promise<void> {
    const minutes = addedInOrder(mergeSorted(lists), "minute");
    const hours = addedInOrder(minutes, "hour");
    await insertPacked(sql, rollupTables.minute, minuteColumns, byTime(minutes), minuteTail);
    await sql.dialect.schema.emptyTemporaryTable(sql, GROUPED, groupedTypes);
    await insertPacked(sql, GROUPED, groupedColumns, hours, "");
    this.#plan.add(await addGrouped(sql));
  }
}

/** Bucket by bucket, and those of one in their order: as they are in a table. */
function byTime(counts: readonly MinuteCount[]): MinuteCount[] {
  return [...Map.groupBy(counts, ({ time }) => time).values()].flat();
}

function tablesOf({ db }: Sql): Kysely<AnalyticsSchema> {
  return db as unknown as Kysely<AnalyticsSchema>;
}
