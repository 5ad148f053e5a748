import type { Clock } from "../../../../../engine/src/clock/clock.ts";
import { pause } from "../../../../../engine/src/clock/pause.ts";
import { OperatorError } from "../../../log/operator-error.ts";
import { type CopiedTable, pick, type Row } from "./database.ts";
import { TableDigest } from "./digest.ts";
import { readPage, type SourcePart, type TouchedRow } from "./source.ts";
import type { TableProgress, TargetPart } from "./target.ts";

/** Touched rows that are read at once. */
const TOUCHED_PER_BATCH = 2_000;
/** Writes are stopped when so few touched rows are left. */
const TOUCHED_LEFT_MAX = 1_000;
/** Under heavy writes some rows are always left. */
const ROUNDS_MAX = 20;
/** A page holds as many rows as fit into about this, within the bounds below. */
const PAGE_BYTES = 2 * 1024 * 1024;
const PAGE_ROWS_MIN = 10;
const PAGE_ROWS_MAX = 5_000;

/** A table with the part of the source and of the target that it belongs to. */
export interface TablePair {
  readonly table: CopiedTable;
  readonly source: SourcePart;
  readonly target: TargetPart;
}

/** How rows change on their way, and how they are compared. */
export interface Rewriting {
  copy(table: CopiedTable, row: Row): Row;
  /** Equal for a row of the source and its copy. */
  comparable(table: CopiedTable, row: Row, side: "source" | "target"): Row;
}

export interface CopyProgress {
  readonly step: "copying" | "indexing" | "comparing";
  /** The table, or the index. */
  readonly name: string;
  readonly done: number;
  readonly all: number;
}

export interface CopyOptions {
  readonly clock: Clock;
  readonly rowsPerSecond: number;
  readonly rewriting: Rewriting;
  readonly onProgress: (progress: CopyProgress) => void;
}

/** The target differs from the source although every change was copied. Nothing was switched. */
export class CopyDiffers extends OperatorError {
  constructor(table: string, source: TableDigest, target: TableDigest) {
    super(
      `The table ${table} differs: ${source.rows} rows with the digest ${source} in the source, ${target.rows} rows with ` +
        `${target} in the target. Nothing was switched, and the source accepts writes. Something else wrote to the target: ` +
        "remove that database, and run this command again with an empty one.",
    );
    this.name = "CopyDiffers";
  }
}

/**
 * Copies tables of a database that is in use.
 *
 * First `copyTables` reads every table once, page by page, each page in its newest state. Meanwhile triggers record the
 * keys of touched rows. Then `catchUp` replaces the touched rows: after a round, the target is the source as of one moment.
 * `compare` adds digests of all rows at such a moment, which later rounds keep up to date.
 */
export class StoreCopy {
  readonly pairs: readonly TablePair[];
  readonly #options: CopyOptions;
  readonly #digests = new Map<string, { source: TableDigest; target: TableDigest }>();

  constructor(pairs: readonly TablePair[], options: CopyOptions) {
    this.pairs = pairs;
    this.#options = options;
  }

  /** Copies what an earlier run did not. */
  async copyTables(): Promise<void> {
    const { clock, rowsPerSecond, rewriting, onProgress } = this.#options;
    const counts = new Map<CopiedTable, { progress: TableProgress; all: number }>();
    for (const { table, source, target } of this.pairs) {
      const progress = await target.progress(table);
      const all = progress.done ? progress.rows : Math.max(progress.rows, await source.count(table));
      counts.set(table, { progress, all });
    }
    const all = sum([...counts.values()].map((count) => count.all));
    let done = sum([...counts.values()].map(({ progress }) => progress.rows));
    const startedAt = clock.monotonic();
    const before = done;
    for (const { table, source, target } of this.pairs) {
      let { progress } = counts.get(table)!;
      let limit = 200;
      while (!progress.done) {
        const rows = await source.page(table, progress.last, limit);
        const last = rows.length === 0 ? progress.last : pick(table, rows.at(-1)!, table.order);
        progress = { last, rows: progress.rows + rows.length, done: rows.length < limit };
        await target.append(
          table,
          rows.map((row) => rewriting.copy(table, row)),
          progress,
        );
        limit = pageRows(rows, limit);
        done += rows.length;
        onProgress({ step: "copying", name: table.name, done, all: Math.max(all, done) });
        // So that the service has its share of the processor.
        await pause(clock, startedAt + ((done - before) / rowsPerSecond) * 1_000 - clock.monotonic());
      }
    }
  }

  /** Replaces touched rows until few are left. */
  async catchUp(): Promise<void> {
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      await this.round();
      const left = await Promise.all(this.#sources().map((source) => source.countTouched()));
      if (sum(left) <= TOUCHED_LEFT_MAX) return;
    }
  }

  /** Replaces all rows that are touched now. */
  async round(): Promise<void> {
    for (const source of this.#sources()) await source.snapshot(() => this.#replaceTouched(source));
  }

  async createIndexes(): Promise<void> {
    for (const target of new Set(this.pairs.map((pair) => pair.target))) {
      let done = 0;
      await target.createIndexes((name) => {
        done++;
        this.#options.onProgress({ step: "indexing", name, done, all: done });
      });
    }
  }

  /**
   * Reads every row of both sides at the end of a round, and compares the digests.
   *
   * @throws {CopyDiffers}
   */
  async compare(): Promise<void> {
    this.#digests.clear();
    let all = 0;
    for (const { table, target } of this.pairs) all += 2 * (await target.progress(table)).rows;
    let done = 0;
    const read = async (pair: TablePair, side: "source" | "target") => {
      const digest = new TableDigest();
      const { table } = pair;
      let last: Row | null = null;
      for (let limit = 200; ; ) {
        const rows: Row[] = await readPage(pair[side].database, table, last, limit);
        for (const row of rows) digest.add(this.#options.rewriting.comparable(table, row, side));
        done += rows.length;
        this.#options.onProgress({ step: "comparing", name: table.name, done, all: Math.max(all, done) });
        if (rows.length < limit) return digest;
        last = pick(table, rows.at(-1)!, table.order);
        limit = pageRows(rows, limit);
      }
    };
    for (const source of this.#sources()) {
      await source.snapshot(async () => {
        await this.#replaceTouched(source);
        for (const pair of this.pairs.filter((candidate) => candidate.source === source)) {
          const digests = { source: await read(pair, "source"), target: await read(pair, "target") };
          requireEqual(pair.table, digests.source, digests.target);
          this.#digests.set(pair.table.name, digests);
        }
      });
    }
  }

  /**
   * The digests of all tables, as of the last round.
   *
   * @throws {CopyDiffers}
   */
  digests(): Record<string, { rows: number; digest: string }> {
    return Object.fromEntries(
      this.pairs.map(({ table }) => {
        const { source, target } = this.#digests.get(table.name)!;
        requireEqual(table, source, target);
        return [table.name, { rows: target.rows, digest: target.toString() }];
      }),
    );
  }

  /**
   * First deletes all touched rows, then inserts those that exist. So a value that must be unique and has moved from one
   * row to another is never in two rows.
   */
  async #replaceTouched(source: SourcePart): Promise<void> {
    const first = await source.touched("0", TOUCHED_PER_BATCH);
    if (first.length === TOUCHED_PER_BATCH) {
      for await (const batch of batches(source, first)) {
        for (const [{ table, target }, keys] of this.#byTable(batch)) {
          const removed = await target.remove(table, keys);
          for (const row of removed) this.#forget(table, row);
        }
      }
    }
    for await (const batch of batches(source, first)) {
      for (const [pair, keys] of this.#byTable(batch)) await this.#replace(pair, keys);
    }
  }

  async #replace({ table, source, target }: TablePair, keys: readonly Row[]): Promise<void> {
    const { rewriting } = this.#options;
    const rows = await source.database.find(table, keys);
    const { before, after } = await target.replace(
      table,
      keys,
      rows.map((row) => rewriting.copy(table, row)),
    );
    for (const row of before) this.#forget(table, row);
    const [expected, found] = [new TableDigest(), new TableDigest()];
    const kept = this.#digests.get(table.name);
    for (const row of rows) {
      const comparable = rewriting.comparable(table, row, "source");
      expected.add(comparable);
      kept?.source.add(comparable);
    }
    for (const row of after) {
      const comparable = rewriting.comparable(table, row, "target");
      found.add(comparable);
      kept?.target.add(comparable);
    }
    requireEqual(table, expected, found);
  }

  /** Takes a row of the target, which was equal to that of the source, out of the digests. */
  #forget(table: CopiedTable, row: Row): void {
    const kept = this.#digests.get(table.name);
    if (!kept) return;
    const comparable = this.#options.rewriting.comparable(table, row, "target");
    kept.source.remove(comparable);
    kept.target.remove(comparable);
  }

  /** The keys of a batch by table, each once. */
  #byTable(batch: readonly TouchedRow[]): [TablePair, Row[]][] {
    const found = new Map<string, Map<string, Row>>();
    for (const { table, key } of batch) {
      const keys = found.get(table) ?? new Map<string, Row>();
      found.set(table, keys.set(JSON.stringify(key), key));
    }
    return this.pairs
      .filter(({ table }) => found.has(table.name))
      .map((pair) => [pair, [...found.get(pair.table.name)!.values()]]);
  }

  #sources(): SourcePart[] {
    return [...new Set(this.pairs.map(({ source }) => source))];
  }
}

async function* batches(source: SourcePart, first: readonly TouchedRow[]): AsyncGenerator<readonly TouchedRow[]> {
  let batch = first;
  while (batch.length > 0) {
    yield batch;
    if (batch.length < TOUCHED_PER_BATCH) return;
    batch = await source.touched(batch.at(-1)!.sequence, TOUCHED_PER_BATCH);
  }
}

function requireEqual(table: CopiedTable, source: TableDigest, target: TableDigest): void {
  if (!source.equals(target)) throw new CopyDiffers(table.name, source, target);
}

/** How many rows the next page should have, after one of this many bytes. */
function pageRows(rows: readonly Row[], limit: number): number {
  let bytes = 0;
  for (const row of rows) for (const value of row) bytes += value?.length ?? 0;
  if (bytes > 2 * PAGE_BYTES) return Math.max(PAGE_ROWS_MIN, Math.floor(limit / 4));
  return bytes < PAGE_BYTES / 2 ? Math.min(PAGE_ROWS_MAX, 2 * limit) : limit;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
