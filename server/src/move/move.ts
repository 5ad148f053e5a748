import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { alphanumeric } from "../../../engine/src/random/random.ts";
import { systemRandom } from "../../../engine/src/random/system.ts";
import { OperatorError } from "../log/operator-error.ts";
import type { Config } from "../platform/config/config.ts";
import type { Secrets } from "../platform/config/secrets.ts";
import { findTables } from "../platform/store/catalog.ts";
import { type CopyProgress, type Rewriting, StoreCopy, type TablePair } from "../platform/store/move/copy.ts";
import type { FormerHolder } from "../platform/store/move/database.ts";
import type { MoveState } from "../platform/store/move/marks.ts";
import { SourcePart } from "../platform/store/move/source.ts";
import { tablesToCopy } from "../platform/store/move/tables.ts";
import { TargetPart } from "../platform/store/move/target.ts";
import { lockPath } from "../platform/store/sqlite/claim.ts";
import { KeyRing } from "../platform/vault/key-ring.ts";
import { keyRingSource } from "../service/app-store.ts";
import { nameOf, openSource, openTarget, type Place, settingsOf } from "./places.ts";
import { resealing, unchanged } from "./rewriting.ts";

/** What to move, and where to. */
export interface MovePlan {
  readonly config: Config;
  readonly secrets: Secrets;
  /** `postgres://…`, or `sqlite:` and a folder. */
  readonly to: string;
  /** The vault's master key on the target, 32 bytes as base64; undefined: it stays the same. */
  readonly vaultKey: string | undefined;
  readonly rowsPerSecond: number;
  /** How long the source may reject writes in the last step before it accepts them again. */
  readonly stopMax: Milliseconds;
}

export type MoveStep = CopyProgress | { readonly step: "catching up" | "last step" };

export interface MoveReport {
  readonly from: string;
  readonly to: string;
  /** By table. The digest is hexadecimal, and the same on both sides. */
  readonly tables: Readonly<Record<string, { rows: number; digest: string }>>;
  /** From the moment at which the source rejected writes until the target could be served; 0 for a move that had ended. */
  readonly stoppedMs: Milliseconds;
}

/** How often the last step is tried while writes go on in between. */
const ATTEMPTS_MAX = 3;

/**
 * Copies the configured store to another place while a service runs on it, and then marks it as moved. If it is interrupted
 * at any moment, the next call continues.
 *
 * @throws {OperatorError} after which the source accepts writes, unless the message says that it has been moved.
 */
export async function moveStore(plan: MovePlan, clock: Clock, onStep: (step: MoveStep) => void): Promise<MoveReport> {
  const { config, secrets } = plan;
  const to = settingsOf(plan.to, config, secrets);
  if (nameOf(config, secrets) === nameOf(to.config, to.secrets)) {
    throw new OperatorError(`--to: ${nameOf(config, secrets)} is the configured database itself.`);
  }
  const source = await openSource(config, secrets, clock);
  try {
    const target = await openTarget(to.config, to.secrets, clock, source.name);
    try {
      return await new Moving(plan, source, target, clock, onStep).run();
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/**
 * Ends a move without a result, or forgets that it has ended: the configured store accepts writes and can be served.
 * Returns the other place; undefined if there was no move.
 */
export async function undoMove(config: Config, secrets: Secrets, clock: Clock): Promise<string | undefined> {
  const source = await openSource(config, secrets, clock);
  try {
    let other: string | undefined;
    for (const database of source.databases) {
      const part = new SourcePart(database, []);
      const state = await part.state();
      if (!state) continue;
      other ??= state.other;
      await part.forget();
    }
    return other;
  } finally {
    await source.close();
  }
}

class Moving {
  readonly #plan: MovePlan;
  readonly #source: Place;
  readonly #target: Place;
  readonly #clock: Clock;
  readonly #onStep: (step: MoveStep) => void;

  constructor(plan: MovePlan, source: Place, target: Place, clock: Clock, onStep: (step: MoveStep) => void) {
    this.#plan = plan;
    this.#source = source;
    this.#target = target;
    this.#clock = clock;
    this.#onStep = onStep;
  }

  async run(): Promise<MoveReport> {
    const rewriting = this.#rewriting();
    const { pairs, sources, targets } = await this.#pair();
    const ended = await this.#begin(sources, targets);
    const report = { from: this.#source.name, to: this.#target.name };
    if (ended.includes(targets[0]!)) {
      for (const target of targets) await target.validate();
      return { ...report, tables: {}, stoppedMs: 0 };
    }
    const open = targets.filter((target) => !ended.includes(target));
    const copy = new StoreCopy(
      pairs.filter(({ target }) => open.includes(target)),
      {
        clock: this.#clock,
        rowsPerSecond: this.#plan.rowsPerSecond,
        rewriting,
        onProgress: this.#onStep,
      },
    );
    await copy.copyTables();
    this.#onStep({ step: "catching up" });
    await copy.round();
    await copy.createIndexes();
    this.#onStep({ step: "catching up" });
    await copy.catchUp();
    await copy.compare();
    const { tables, stoppedAt } = await this.#finish(copy, sources);
    const former = await this.#formerHolder();
    // The main database is the first of a place, and its end makes the target servable.
    const demands = await sources[0]?.demands();
    for (const target of open.toReversed()) await target.end(former, target === targets[0] ? demands : undefined);
    const stoppedMs = this.#clock.monotonic() - stoppedAt;
    for (const target of targets) await target.validate();
    return { ...report, tables, stoppedMs };
  }

  #rewriting(): Rewriting {
    const { vaultKey } = this.#plan;
    if (vaultKey === undefined) return unchanged;
    const from = new KeyRing(keyRingSource(this.#source.config, this.#source.secrets));
    return resealing(from, new KeyRing({ kind: "given", keys: [vaultKey] }));
  }

  /** The tables to copy, with the databases that they belong to. */
  async #pair(): Promise<{ pairs: TablePair[]; sources: SourcePart[]; targets: TargetPart[] }> {
    const find = (place: Place) => Promise.all(place.databases.map(findTables));
    const [ofSource, ofTarget] = [await find(this.#source), await find(this.#target)];
    const tables = tablesToCopy(ofSource.flat(), ofTarget.flat());
    const has = (found: (typeof ofSource)[number]) =>
      tables.filter(({ name }) => found.some((table) => table.name === name));
    const sources = this.#source.databases.map((database, at) => new SourcePart(database, has(ofSource[at]!)));
    const targets = this.#target.databases.map((database, at) => new TargetPart(database, has(ofTarget[at]!)));
    const pairs = tables.map((table) => ({
      table,
      source: sources.find((part) => part.tables.includes(table))!,
      target: targets.find((part) => part.tables.includes(table))!,
    }));
    return { pairs, sources, targets };
  }

  /** Marks both sides, unless an earlier run did, and starts to record changes. Returns the targets that are complete. */
  async #begin(sources: readonly SourcePart[], targets: readonly TargetPart[]): Promise<TargetPart[]> {
    const [from, to] = [this.#source.name, this.#target.name];
    const begun = await sources[0]!.state();
    if (begun && begun.other !== to) {
      throw new OperatorError(
        `A move of this database to ${begun.other} ${begun.ended ? "has ended" : "was begun"}. Give that with --to, or forget ` +
          "it with `latchkey migrate-store --undo`.",
      );
    }
    const moveId = begun?.moveId ?? alphanumeric(systemRandom, 16);
    const states: (MoveState | undefined)[] = [];
    for (const target of targets) states.push(await target.state());
    const foreign = states.find((state) => state !== undefined && state.moveId !== moveId);
    if (foreign) {
      throw new OperatorError(
        foreign.ended
          ? `The target ${to} is not empty: it was copied from ${foreign.other}. Give an empty database with --to.`
          : `The target ${to} is an unfinished copy of another move (of ${foreign.other}). Give an empty one with --to.`,
      );
    }
    const ended = targets.filter((_, at) => states[at]?.ended);
    if (ended.length > 0 && !begun?.ended) {
      throw new OperatorError(
        `The target ${to} was served since the move was undone. Give an empty database with --to.`,
      );
    }
    if (ended.includes(targets[0]!)) return ended;
    // Before the source is changed in any way.
    for (const [at, target] of targets.entries()) {
      const used = states[at] ? undefined : await target.usedTable();
      if (used !== undefined) {
        throw new OperatorError(
          `The target ${to} is not empty: its table ${used} has rows. Give an empty database with --to.`,
        );
      }
    }
    if (begun?.ended && !states.some(Boolean)) {
      throw new OperatorError(
        `This database was moved to ${to}, which is empty now. Restore it, or return to this database as it was then with ` +
          "`latchkey migrate-store --undo`.",
      );
    }
    for (const source of sources) await source.record(moveId, to);
    for (const [at, target] of targets.entries()) if (!states[at]) await target.begin(moveId, from);
    await this.#requireSameVault(targets[0]!);
    return ended;
  }

  /** A copy that was begun with another master key would have data keys under both. */
  async #requireSameVault(target: TargetPart): Promise<void> {
    const { vaultKey } = this.#plan;
    const [row] = await target.database.rows("select fingerprint from vault");
    if (!row) return;
    const [fromSource] = await this.#source.databases[0]!.rows("select fingerprint from vault");
    const expected =
      vaultKey === undefined ? fromSource?.[0] : new KeyRing({ kind: "given", keys: [vaultKey] }).fingerprints[0];
    // A rotation on the source during the move is copied with the other changes.
    if (row[0] === expected || (vaultKey === undefined && fromSource === undefined)) return;
    throw new OperatorError(
      "The copy was begun with another --new-vault-key-file. Give the same one, or begin again with an empty target.",
    );
  }

  /** Stops writes, copies what is left, and marks the source as moved. */
  async #finish(
    copy: StoreCopy,
    sources: readonly SourcePart[],
  ): Promise<Pick<MoveReport, "tables"> & { stoppedAt: Milliseconds }> {
    const open = () => Promise.allSettled(sources.map((source) => source.open()));
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await copy.catchUp();
      this.#onStep({ step: "last step" });
      const stoppedAt = this.#clock.monotonic();
      try {
        for (const source of sources) await source.close(this.#plan.stopMax);
        await copy.round();
        const tables = copy.digests();
        let hasEnded = true;
        for (const source of sources) hasEnded = hasEnded && (await source.end());
        if (hasEnded) return { tables, stoppedAt };
      } catch (error) {
        await open();
        throw error;
      }
      await open();
    }
    throw new OperatorError(
      `The last step took longer than --stop-max allows (${this.#plan.stopMax / 1_000} s), ${ATTEMPTS_MAX} times. The source ` +
        "accepts writes. Run this command again with a larger value, or at a quieter hour: it continues.",
    );
  }

  /**
   * The process that counts limits for the source. Another process on the target waits until that one can no longer count;
   * one on the same data folder need not wait. Undefined where counters are in Redis, and where nothing serves.
   */
  async #formerHolder(): Promise<FormerHolder | undefined> {
    const { config, secrets, databases } = this.#source;
    if (secrets.redisUrl !== undefined) return undefined;
    if (config.database.kind === "postgres") {
      const [row] = await databases[0]!.rows("select holder, lease_ms from claim where shared = 0");
      return row && { name: row[0]!, lease: Number(row[1]) };
    }
    const release = lockPath(join(config.dataDirectory, "folder"));
    release?.();
    if (release) return undefined;
    const [name] = JSON.parse(readFileSync(join(config.dataDirectory, "holders"), "utf8")) as string[];
    return name === undefined ? undefined : { name, lease: config.staleMax };
  }
}
