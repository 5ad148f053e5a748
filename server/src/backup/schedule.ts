import { readdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock, Instant, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import type { Events } from "../log/events.ts";
import { makeFolder } from "../platform/store/folder.ts";
import type { BackupPlan } from "./create.ts";

/** The default rate of a copy, of reading and writing together. A service with a disk of 200 MB a second keeps its latency. */
export const BACKUP_BYTES_PER_SECOND = 64 * 2 ** 20;

/** Names of scheduled backups. They sort by time, and no other file is ever removed. */
const NAME = /^latchkey-(\d{4})-(\d\d)-(\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup$/;

/** How often the schedule looks whether a backup is due, at most. */
const CHECK_INTERVAL: Milliseconds = 60_000;

export interface ScheduleOptions {
  every: Milliseconds;
  /** How many backups stay. */
  keep: number;
  folder: string;
  plan: Omit<BackupPlan, "target" | "replaces" | "includesVaultKey" | "bytesPerSecond">;
}

/** Makes backups periodically, and removes old ones. A failure is reported and tried again; it never stops the service. */
export class BackupSchedule {
  /** When the newest backup was made; undefined if there is none. */
  lastMadeAt: Instant | undefined;
  /** The size of the newest backup. */
  lastBytes: number | undefined;
  failures = 0;
  /** Why the last attempt failed; undefined after a success. */
  trouble: string | undefined;
  readonly #options: ScheduleOptions;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #timer: { cancel(): void };
  #worker: Worker | undefined;

  constructor(options: ScheduleOptions, clock: Clock, events: Events) {
    this.#options = options;
    this.#clock = clock;
    this.#events = events;
    this.#readNewest();
    this.#timer = every(clock, Math.min(options.every, CHECK_INTERVAL), () => this.#runIfDue());
  }

  /** The schedule and its newest result, for operators. */
  describe() {
    const { every } = this.#options;
    const now = this.#clock.now();
    return {
      everyMs: every,
      ...(this.lastMadeAt !== undefined && { lastMadeAt: this.lastMadeAt, bytes: this.lastBytes }),
      nextAt: this.lastMadeAt === undefined ? now : Math.max(now, this.lastMadeAt + every),
      failures: this.failures,
      ...(this.trouble !== undefined && { trouble: this.trouble }),
    };
  }

  /** Ends a backup in progress. The next one to the same folder starts again. */
  async stop(): Promise<void> {
    this.#timer.cancel();
    await this.#worker?.terminate();
  }

  async #runIfDue(): Promise<void> {
    const now = this.#clock.now();
    // One that is from after the next is due was made before the clock was set back: it says nothing about what is due.
    if (this.lastMadeAt !== undefined && Math.abs(now - this.lastMadeAt) < this.#options.every) return;
    const { folder, keep } = this.#options;
    const target = join(folder, `latchkey-${new Date(now).toISOString().slice(0, 19).replaceAll(":", "")}Z.backup`);
    try {
      makeFolder(folder);
      // What an interrupted backup left, whose name no later one has.
      for (const name of readdirSync(folder)) {
        if (NAME.test(name.replace(/\.partial$/, "")) && name.endsWith(".partial")) {
          rmSync(join(folder, name), { recursive: true, force: true });
        }
      }
      const bytes = await this.#run(target);
      this.lastMadeAt = now;
      this.lastBytes = statSync(target).size;
      this.trouble = undefined;
      for (const name of this.#names(basename(target)).slice(0, -keep)) rmSync(join(folder, name));
      this.#events.backupMade({ file: target, bytes, tookMs: this.#clock.now() - now });
    } catch (error) {
      this.failures++;
      this.trouble = (error as Error).message;
      this.#events.backupFailed(error);
    }
  }

  #run(target: string): Promise<number> {
    const plan: BackupPlan = {
      ...this.#options.plan,
      target,
      replaces: false,
      includesVaultKey: false,
      bytesPerSecond: BACKUP_BYTES_PER_SECOND,
    };
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: plan, name: "backup" });
    this.#worker = worker;
    return new Promise<number>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("The backup was interrupted")));
    }).finally(() => {
      this.#worker = undefined;
    });
  }

  /** Scheduled backups, the oldest first: those that are later than the newest were made before the clock was set back. */
  #names(newest?: string): string[] {
    const names = readdirSync(this.#options.folder)
      .filter((name) => NAME.test(name))
      .sort();
    const later = newest === undefined ? [] : names.filter((name) => name > newest);
    return [...later, ...names.slice(0, names.length - later.length)];
  }

  #readNewest(): void {
    try {
      const name = this.#names().at(-1) ?? "";
      const [, year, month, day, hour, minute, second] = NAME.exec(name) ?? [];
      if (year === undefined) return;
      this.lastBytes = statSync(join(this.#options.folder, name)).size;
      this.lastMadeAt = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`) as Instant;
    } catch {
      // No folder yet.
    }
  }
}
