import pg from "pg";
import type { Clock, Milliseconds, Timer } from "../../clock/clock.ts";
import type { Claim, ClaimOptions, GroupMark } from "../store.ts";

// Any fixed numbers will do, as long as nothing else on the server takes the same ones.
/** Held exclusively by a process that counts alone, shared by those that count together. */
const PRESENCE_LOCK = 7_262_837_123_003;
/** Held shared by members whose Redis carries the mark of the group, exclusively while the mark is written. */
const MEMBERSHIP_LOCK = 7_262_837_123_011;

const CONNECT_TIMEOUT: Milliseconds = 3_000;
const QUERY_TIMEOUT: Milliseconds = 3_000;
/** From one check of a connection that holds the claim to the next. */
const HEARTBEAT: Milliseconds = 1_000;
/** From one attempt to regain the claim to the next. */
const RETRY: Milliseconds = 200;
/** How long the end of the claim waits for the server. */
const RELEASE_TIMEOUT: Milliseconds = 1_000;
/** How long a former process of the same data folder may still seem to hold the claim. */
const GHOST_PATIENCE: Milliseconds = 5_000;
/** How long members of a group have to show up again before its database or its Redis is taken over. */
const GROUP_PATIENCE: Milliseconds = 15_000;
/** How long a Redis without the mark of a group that counts elsewhere is asked again. */
const MARK_PATIENCE: Milliseconds = 8_000;

interface ClaimRow {
  holder: string;
  shared: boolean;
  leaseMs: number;
}

/** The mark of the group is not in this Redis yet; asking again may help. */
export class MarkMissing extends Error {
  constructor() {
    super("Other nodes serve from this database and have not marked this Redis as theirs");
    this.name = "MarkMissing";
  }
}

/**
 * The claim of one process on a PostgreSQL database.
 *
 * An advisory lock on a connection of its own keeps others out while the connection lives. A row names the holder, for
 * the time in which it does not: the process itself, or the group of processes that count together in one Redis.
 *
 * States: *waiting*, while the row names another holder that did not release it and may still count; nothing is counted.
 * *Held*: the row names this process or its group. It stays held when the connection breaks, and the lock is asked for
 * again every 200 ms. A process that counts alone goes on for the lease at most, and another one waits for as long
 * before it takes over, so the two never overlap. *Taken*: the row names another holder. There is no way back.
 */
export class PostgresClaim implements Claim {
  readonly #url: string;
  readonly #clock: Clock;
  readonly #options: ClaimOptions;
  #client: pg.Client | undefined;
  #backendPid = 0;
  #isHeld = false;
  #isTaken = false;
  #isReleased = false;
  /** The holder in the row: this process, or its group. */
  #holder: string;
  /** Whether this process put its group into the row, so that no former member can be counting. */
  #isFounder = false;
  #isMember = false;
  /** Until when this process may count alone, by the monotonic clock. */
  #validUntil: Milliseconds = 0;
  /** The other holder that is waited for, and since when its lock was seen free. */
  #waitsFor: { holder: string; since: Milliseconds; leaseMs: Milliseconds } | undefined;
  #unmarkedSince: Milliseconds | undefined;
  #absentSince: Milliseconds | undefined;
  #timer: Timer | undefined;
  #turn: Promise<void> = Promise.resolve();

  private constructor(url: string, clock: Clock, options: ClaimOptions) {
    this.#url = url;
    this.#clock = clock;
    this.#options = options;
    this.#holder = options.holder;
  }

  /** Undefined: another process has the database, and counts apart from this one. */
  static async take(url: string, clock: Clock, options: ClaimOptions): Promise<PostgresClaim | undefined> {
    const claim = new PostgresClaim(url, clock, options);
    const startedAt = clock.monotonic();
    try {
      await claim.#connect();
      while (!(await claim.#lock())) {
        // What an earlier process on this data folder left behind is ended and then waited for.
        if (!(await claim.#endGhosts()) || clock.monotonic() - startedAt > GHOST_PATIENCE) {
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
    await this.#inTurn(() => this.#adopt());
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

  /** Rejects with `MarkMissing` as long as it is not known whether the others count in this Redis. */
  join(mark: GroupMark): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#isTaken || this.#isReleased) throw new MarkMissing();
      if (this.#isMember && this.#client) {
        // The group is alive, so a Redis without its mark was emptied or replaced under it.
        if ((await mark.read()) !== this.#holder) await mark.write(this.#holder);
        return;
      }
      const client = this.#client;
      if (client === undefined || !this.#isHeld) {
        // Without the database nothing has changed for a group that has been joined.
        if (this.#isHeld && (await mark.read()) === this.#holder) return;
        throw new MarkMissing();
      }
      if ((await mark.read()) !== this.#holder) {
        const now = this.#clock.monotonic();
        if (!(await ask(client, "pg_try_advisory_lock", MEMBERSHIP_LOCK))) {
          this.#absentSince = undefined;
          this.#unmarkedSince ??= now;
          if (now - this.#unmarkedSince >= MARK_PATIENCE) this.#lose();
          throw new MarkMissing();
        }
        try {
          this.#absentSince ??= now;
          if (!this.#isFounder && now - this.#absentSince < GROUP_PATIENCE) throw new MarkMissing();
          await mark.write(this.#holder);
        } finally {
          await ask(client, "pg_advisory_unlock", MEMBERSHIP_LOCK);
        }
      }
      if (!(await ask(client, "pg_try_advisory_lock_shared", MEMBERSHIP_LOCK))) throw new MarkMissing();
      this.#isMember = true;
      this.#unmarkedSince = undefined;
      this.#absentSince = undefined;
    });
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    this.#timer?.cancel();
    await this.#inTurn(async () => {
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
      void this.#inTurn(() => this.#check()).finally(() => this.#schedule());
    });
  }

  /** One step at a time: they share the connection. */
  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(step);
    this.#turn = result.then(
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
        const { rows } = await this.#client.query<{ pid: number }>("select pg_backend_pid() as pid");
        // A pooler has put this session onto another one, where the lock is not.
        if (rows[0]!.pid !== this.#backendPid) throw new Error("The session was changed");
        this.#validUntil = sentAt + this.#options.lease;
        return;
      }
      if (!this.#client) await this.#connect();
      if (await this.#lock()) await this.#adopt();
      else await this.#meet();
    } catch {
      this.#drop();
    }
  }

  /** Somebody else has the lock: a ghost of this process, or a process that waits or has taken over. */
  async #meet(): Promise<void> {
    if (await this.#endGhosts()) return;
    if (!this.#isHeld) this.#lose();
    else if ((await this.#row())?.holder !== this.#holder) this.#lose();
  }

  /** With the lock: makes the row name this process or its group, or waits until its holder cannot be counting. */
  async #adopt(): Promise<void> {
    const client = this.#client!;
    const { shared, holder, lease, formerHolders } = this.#options;
    const sentAt = this.#clock.monotonic();
    const row = await this.#row();
    if (this.#isHeld && row?.holder !== this.#holder) {
      this.#lose();
      return;
    }
    if (!this.#isHeld) {
      if (shared && row?.shared) {
        this.#holder = row.holder;
        await client.query("update claim set lease_ms = greatest(lease_ms, $1)", [lease]);
      } else if (row === undefined || (!row.shared && formerHolders.includes(row.holder)) || this.#hasWaited(row)) {
        this.#isFounder = await this.#write(row);
        // Another member was faster; the next turn reads its row.
        if (!this.#isFounder) return;
        this.#holder = holder;
      } else {
        // Not kept meanwhile: the holder that is waited for shall be able to come back.
        await ask(client, shared ? "pg_advisory_unlock_shared" : "pg_advisory_unlock", PRESENCE_LOCK);
        return;
      }
    }
    const waited = this.#waitsFor !== undefined || this.#isHeld;
    this.#waitsFor = undefined;
    this.#isHeld = true;
    this.#validUntil = sentAt + lease;
    if (this.#isMember && !(await ask(client, "pg_try_advisory_lock_shared", MEMBERSHIP_LOCK))) {
      throw new Error("The group is being marked");
    }
    if (waited) this.#options.onRegained();
  }

  /** Whether this holder has had the time to notice that it lost the claim, and to stop. */
  #hasWaited({ holder, shared, leaseMs }: ClaimRow): boolean {
    const now = this.#clock.monotonic();
    if (this.#waitsFor?.holder !== holder) {
      this.#waitsFor = { holder, since: now, leaseMs: shared ? Math.min(GROUP_PATIENCE, leaseMs) : leaseMs };
      this.#options.onWait(this.#waitsFor.leaseMs);
    }
    return now - this.#waitsFor.since >= this.#waitsFor.leaseMs;
  }

  /** Puts this process into the row, unless the row has changed since it was read. */
  async #write(row: ClaimRow | undefined): Promise<boolean> {
    const { holder, shared, lease } = this.#options;
    const values = [holder, shared ? 1 : 0, lease];
    const { rowCount } =
      row === undefined
        ? await this.#client!.query(
            "insert into claim (id, holder, shared, lease_ms) values (1, $1, $2, $3) on conflict do nothing",
            values,
          )
        : await this.#client!.query("update claim set holder = $1, shared = $2, lease_ms = $3 where holder = $4", [
            ...values,
            row.holder,
          ]);
    return rowCount === 1;
  }

  async #row(): Promise<ClaimRow | undefined> {
    const { rows } = await this.#client!.query<{ holder: string; shared: string; lease_ms: string }>(
      "select holder, shared, lease_ms from claim",
    );
    const [row] = rows;
    return row && { holder: row.holder, shared: Number(row.shared) === 1, leaseMs: Number(row.lease_ms) };
  }

  #lock(): Promise<boolean> {
    const { shared } = this.#options;
    return ask(this.#client!, shared ? "pg_try_advisory_lock_shared" : "pg_try_advisory_lock", PRESENCE_LOCK);
  }

  /** Ends connections of this process, or of earlier ones on its data folder, that the server believes to be alive. */
  async #endGhosts(): Promise<boolean> {
    const names = [this.#options.holder, ...this.#options.formerHolders].map(applicationName);
    const { rowCount } = await this.#client!.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = any($1) and pid <> pg_backend_pid()",
      [names],
    );
    return rowCount! > 0;
  }

  async #connect(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: applicationName(this.#options.holder),
      connectionTimeoutMillis: CONNECT_TIMEOUT,
      query_timeout: QUERY_TIMEOUT,
      keepAlive: true,
    });
    const lost = () => {
      if (this.#client === client) this.#drop();
      else destroy(client);
    };
    client.on("error", lost);
    client.on("end", lost);
    try {
      await client.connect();
      // A server that no longer reaches this process frees the lock soon.
      await client.query(
        "set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3; set statement_timeout = 3000",
      );
      const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
      this.#backendPid = rows[0]!.pid;
      this.#client = client;
    } catch (error) {
      destroy(client);
      throw error;
    }
  }

  #drop(): void {
    const client = this.#client;
    if (client === undefined) return;
    this.#client = undefined;
    destroy(client);
    if (this.#isReleased || this.#isTaken || !this.#isHeld) return;
    this.#options.onLost();
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

function applicationName(holder: string): string {
  return `latchkey-claim-${holder}`;
}

async function ask(client: pg.Client, lockFunction: string, lock: number): Promise<boolean> {
  const { rows } = await client.query<{ done: boolean }>(`select ${lockFunction}($1) as done`, [lock]);
  return rows[0]!.done;
}

/** Without a word to the server, which may not be there to hear it. */
function destroy(client: pg.Client | undefined): void {
  (client as unknown as { connection?: { stream: { destroy(): void } } })?.connection?.stream.destroy();
}

function pause(clock: Clock, length: Milliseconds): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  clock.schedule(length, resolve);
  return promise;
}
