import type pg from "pg";
import type { Clock, Milliseconds, Timer } from "../../../../../engine/src/clock/clock.ts";
import { pause } from "../../../../../engine/src/clock/pause.ts";
import type { Claim, ClaimOptions, GroupMark } from "../store.ts";
import { applicationName, callLock, destroy, openClaimConnection, readBackendPid } from "./claim-connection.ts";
import { isUnavailable } from "./failures.ts";

// Arbitrary numbers that nothing else on the server uses as locks.
/** Exclusive for a process that counts alone, shared for processes that count together. */
const PRESENCE_LOCK = 7_262_837_123_003;
/** Shared for members whose Redis has the mark of the group, exclusive while the mark is written. */
const MEMBERSHIP_LOCK = 7_262_837_123_011;

/** The interval between checks of the connection that holds the claim. */
const HEARTBEAT: Milliseconds = 1_000;
/** The interval between attempts to regain the claim. */
const RETRY: Milliseconds = 200;
/** How long a release waits for the server. */
const RELEASE_TIMEOUT: Milliseconds = 1_000;
/** How long to wait until the server has ended connections of earlier processes on the same data folder. */
const STALE_TIMEOUT: Milliseconds = 5_000;
/** How long members of a group can be absent before its database or its Redis is taken over. */
const GROUP_TIMEOUT: Milliseconds = 15_000;
/** How long to retry a Redis that lacks the mark of a group that counts elsewhere. */
const MARK_TIMEOUT: Milliseconds = 8_000;

interface ClaimRow {
  holder: string;
  shared: boolean;
  leaseMs: number;
}

/** This Redis does not have the mark of the group yet. A retry may succeed. */
export class MarkMissing extends Error {
  constructor() {
    super("Other nodes serve from this database and have not marked this Redis as theirs");
    this.name = "MarkMissing";
  }
}

/**
 * The claim of one process on a PostgreSQL database.
 *
 * An advisory lock on a separate connection excludes other processes while the connection is open. A row names the holder
 * (a process, or a group of processes with one Redis) and protects the claim while the connection is broken.
 *
 * States. *Waiting*: the row names another holder, which did not release it and may still count; nothing is counted.
 * *Held*: the row names this process or its group. The claim stays held when the connection breaks, and the lock is
 * requested again every 200 ms. A process that counts alone continues for at most its lease, and another process waits for
 * the same time before it takes over, so the two never overlap. A copy of the database from an earlier time is claimed anew.
 * *Taken*: the row names another holder. This state is final.
 */
export class PostgresClaim implements Claim {
  readonly #url: string;
  readonly #clock: Clock;
  readonly #options: ClaimOptions;
  #client: pg.Client | undefined;
  #backendPid = 0;
  #isHeld = false;
  #isTaken = false;
  /** Whether a loss of the connection was reported that has not ended: attempts to regain the claim may fail too. */
  #isLossReported = false;
  #isReleased = false;
  /** The holder in the row: this process, or its group. */
  #holder: string;
  /** Whether this process wrote its group into the row, so that no earlier member can be counting. */
  #isFounder = false;
  #isMember = false;
  /** The end of the lease of a process that counts alone, by the monotonic clock. */
  #validUntil: Milliseconds = 0;
  /** The other holder, and since when its lock has been free. */
  #waitsFor: { holder: string; since: Milliseconds; leaseMs: Milliseconds } | undefined;
  #unmarkedSince: Milliseconds | undefined;
  #absentSince: Milliseconds | undefined;
  #timer: Timer | undefined;
  #lastStep: Promise<void> = Promise.resolve();

  private constructor(url: string, clock: Clock, options: ClaimOptions) {
    this.#url = url;
    this.#clock = clock;
    this.#options = options;
    this.#holder = options.holder;
  }

  /** Claims the database; undefined when another process has claimed it and counts separately. */
  static async take(url: string, clock: Clock, options: ClaimOptions): Promise<PostgresClaim | undefined> {
    const claim = new PostgresClaim(url, clock, options);
    const startedAt = clock.monotonic();
    try {
      await claim.#connect();
      while (!(await claim.#lock())) {
        // Connections of earlier processes on this data folder are terminated, and then the lock is retried.
        if (!(await claim.#endStale()) || clock.monotonic() - startedAt > STALE_TIMEOUT) {
          claim.#drop();
          return undefined;
        }
        await pause(clock, RETRY);
      }
    } catch (error) {
      claim.#drop();
      throw error;
    }
    return claim;
  }

  async settle(): Promise<void> {
    await this.#serialize(async () => {
      try {
        await this.#adopt();
      } catch (error) {
        if (this.#client && !isUnavailable(error)) throw error;
        // The claim is not held yet: the next steps connect and adopt again.
        this.#drop();
      }
    });
    this.#schedule();
  }

  get mayCount(): boolean {
    if (!this.#isHeld) return false;
    return this.#options.shared || this.#clock.monotonic() < this.#validUntil;
  }

  get trouble(): string | undefined {
    if (this.#isTaken) return "was taken by another process";
    if (this.#waitsFor) {
      const { since, leaseMs } = this.#waitsFor;
      const rest = Math.ceil((since + leaseMs - this.#clock.monotonic()) / 1_000);
      return `an earlier process did not release the database and may still count; limits are counted in ${Math.max(0, rest)} s`;
    }
    if (!this.mayCount) return "the claim on the database was lost and is not regained; limits are not counted";
    return this.#client === undefined ? "the connection that holds the claim on the database is lost" : undefined;
  }

  get isMember(): boolean {
    return this.#isMember;
  }

  /** Rejects with `MarkMissing` while it is uncertain whether the others count in this Redis. */
  join(mark: GroupMark): Promise<void> {
    return this.#serialize(async () => {
      if (this.#isTaken || this.#isReleased) throw new MarkMissing();
      if (this.#isMember && this.#client) {
        // The group is active, so a Redis without its mark was emptied or replaced.
        if ((await mark.read()) !== this.#holder) await mark.write(this.#holder);
        return;
      }
      const client = this.#client;
      if (client === undefined || !this.#isHeld) {
        // The database is unreachable, so a group that was joined has not changed.
        if (this.#isHeld && (await mark.read()) === this.#holder) return;
        throw new MarkMissing();
      }
      if ((await mark.read()) !== this.#holder) {
        const now = this.#clock.monotonic();
        if (!(await callLock(client, "pg_try_advisory_lock", MEMBERSHIP_LOCK))) {
          this.#absentSince = undefined;
          this.#unmarkedSince ??= now;
          if (now - this.#unmarkedSince >= MARK_TIMEOUT) this.#lose();
          throw new MarkMissing();
        }
        try {
          this.#absentSince ??= now;
          if (!this.#isFounder && now - this.#absentSince < GROUP_TIMEOUT) throw new MarkMissing();
          await mark.write(this.#holder);
        } finally {
          await callLock(client, "pg_advisory_unlock", MEMBERSHIP_LOCK);
        }
      }
      if (!(await callLock(client, "pg_try_advisory_lock_shared", MEMBERSHIP_LOCK))) throw new MarkMissing();
      this.#isMember = true;
      this.#unmarkedSince = undefined;
      this.#absentSince = undefined;
    });
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    this.#timer?.cancel();
    await this.#serialize(async () => {
      if (this.#client && this.#isHeld && !this.#options.shared) {
        const deleted = this.#client.query("delete from claim where holder = $1", [this.#options.holder]);
        await Promise.race([deleted.catch(() => {}), pause(this.#clock, RELEASE_TIMEOUT)]);
      }
      const client = this.#client;
      this.#client = undefined;
      await Promise.race([client?.end().catch(() => {}), pause(this.#clock, RELEASE_TIMEOUT)]);
      destroy(client);
    });
  }

  #schedule(): void {
    this.#timer?.cancel();
    if (this.#isReleased || this.#isTaken) return;
    const delay = this.#client && this.#isHeld ? HEARTBEAT : RETRY;
    this.#timer = this.#clock.schedule(delay, () => {
      void this.#serialize(() => this.#check()).finally(() => this.#schedule());
    });
  }

  /** Runs one step at a time, because steps share the connection. */
  #serialize<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#lastStep.then(step);
    this.#lastStep = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  async #check(): Promise<void> {
    if (this.#isReleased) return;
    try {
      if (this.#client && this.#isHeld) {
        const sentAt = this.#clock.monotonic();
        const pid = await readBackendPid(this.#client);
        // A pooler has moved this session to another backend, which does not hold the lock.
        if (pid !== this.#backendPid) throw new Error("The session was changed");
        this.#validUntil = sentAt + this.#options.lease;
        return;
      }
      if (!this.#client) await this.#connect();
      if (await this.#lock()) await this.#adopt();
      else await this.#checkHolder();
    } catch {
      this.#drop();
    }
  }

  /** Another session has the lock: a stale one of this process, or a process that waits or has taken over. */
  async #checkHolder(): Promise<void> {
    if (await this.#endStale()) return;
    if (!this.#isHeld) this.#lose();
    else if ((await this.#row())?.holder !== this.#holder) this.#lose();
  }

  /** With the lock held: writes this process or its group into the row, or waits until its holder cannot be counting. */
  async #adopt(): Promise<void> {
    const client = this.#session;
    const { shared, holder, lease, formerHolders } = this.#options;
    const sentAt = this.#clock.monotonic();
    const row = await this.#row();
    if (this.#isHeld && row?.holder !== this.#holder) {
      if (!this.#isOfEarlierCopy(row)) {
        this.#lose();
        return;
      }
      if (!(await this.#write(row))) return;
    }
    if (!this.#isHeld) {
      if (shared && row?.shared) {
        this.#holder = row.holder;
        await client.query("update claim set lease_ms = greatest(lease_ms, $1)", [lease]);
      } else if (row === undefined || (!row.shared && formerHolders.includes(row.holder)) || this.#hasWaited(row)) {
        this.#isFounder = await this.#write(row);
        // Another member was faster. The next step reads its row.
        if (!this.#isFounder) return;
        this.#holder = holder;
      } else {
        // Release the lock during the wait, so that the current holder can return.
        await callLock(client, shared ? "pg_advisory_unlock_shared" : "pg_advisory_unlock", PRESENCE_LOCK);
        return;
      }
    }
    const waited = this.#waitsFor !== undefined || this.#isHeld;
    this.#waitsFor = undefined;
    this.#isHeld = true;
    this.#validUntil = sentAt + lease;
    if (this.#isMember && !(await callLock(client, "pg_try_advisory_lock_shared", MEMBERSHIP_LOCK))) {
      throw new Error("The group is being marked");
    }
    this.#isLossReported = false;
    if (waited) this.#options.onRegained();
  }

  /**
   * Whether the row says nothing about another process, but was written, or removed, before this process wrote its own: the
   * database is a copy from then. A former holder on this data folder has ended. Without a row, no other process can have
   * counted while the lease of this one lasts.
   */
  #isOfEarlierCopy(row: ClaimRow | undefined): boolean {
    if (this.#options.shared) return false;
    if (row === undefined) return this.mayCount;
    return !row.shared && this.#options.formerHolders.includes(row.holder);
  }

  /** Whether this holder has had enough time to detect the loss of the claim and to stop. */
  #hasWaited({ holder, shared, leaseMs }: ClaimRow): boolean {
    const now = this.#clock.monotonic();
    if (this.#waitsFor?.holder !== holder) {
      this.#waitsFor = { holder, since: now, leaseMs: shared ? Math.min(GROUP_TIMEOUT, leaseMs) : leaseMs };
      this.#options.onWait(this.#waitsFor.leaseMs);
    }
    return now - this.#waitsFor.since >= this.#waitsFor.leaseMs;
  }

  /** Writes this process into the row, unless the row has changed since it was read. */
  async #write(row: ClaimRow | undefined): Promise<boolean> {
    const { holder, shared, lease } = this.#options;
    const values = [holder, shared ? 1 : 0, lease];
    const { rowCount } =
      row === undefined
        ? await this.#session.query(
            "insert into claim (id, holder, shared, lease_ms) values (1, $1, $2, $3) on conflict do nothing",
            values,
          )
        : await this.#session.query("update claim set holder = $1, shared = $2, lease_ms = $3 where holder = $4", [
            ...values,
            row.holder,
          ]);
    return rowCount === 1;
  }

  async #row(): Promise<ClaimRow | undefined> {
    const { rows } = await this.#session.query<{ holder: string; shared: string; lease_ms: string }>(
      "select holder, shared, lease_ms from claim",
    );
    const [row] = rows;
    return row && { holder: row.holder, shared: Number(row.shared) === 1, leaseMs: Number(row.lease_ms) };
  }

  #lock(): Promise<boolean> {
    const { shared } = this.#options;
    return callLock(this.#session, shared ? "pg_try_advisory_lock_shared" : "pg_try_advisory_lock", PRESENCE_LOCK);
  }

  /** Terminates connections of this process and of earlier ones on its data folder that the server considers open. */
  async #endStale(): Promise<boolean> {
    const names = [this.#options.holder, ...this.#options.formerHolders].map(applicationName);
    const { rowCount } = await this.#session.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = any($1) and pid <> pg_backend_pid()",
      [names],
    );
    return rowCount! > 0;
  }

  /** @throws when the connection is lost. */
  get #session(): pg.Client {
    if (this.#client === undefined) throw new Error("The connection of the claim is lost");
    return this.#client;
  }

  async #connect(): Promise<void> {
    const { client, backendPid } = await openClaimConnection(this.#url, this.#options.holder, (lost) => {
      if (this.#client === lost) this.#drop();
      else destroy(lost);
    });
    this.#backendPid = backendPid;
    this.#client = client;
  }

  #drop(): void {
    const client = this.#client;
    if (client === undefined) return;
    this.#client = undefined;
    destroy(client);
    if (this.#isReleased || this.#isTaken || !this.#isHeld) return;
    if (!this.#isLossReported) this.#options.onLost();
    this.#isLossReported = true;
    this.#schedule();
  }

  #lose(): void {
    if (this.#isTaken || this.#isReleased) return;
    this.#isTaken = true;
    this.#isHeld = false;
    this.#timer?.cancel();
    this.#options.onTaken();
  }
}
