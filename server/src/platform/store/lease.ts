import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { Sql } from "./store.ts";

/** The right of one node to do a kind of work, until it expires or is taken over. */
export interface Lease {
  /** The kind of work. */
  name: string;
  /** The name of the process. */
  holder: string;
  /** Rises with every taking, so that a former holder is recognized. */
  token: number;
}

/** How long a lease lasts after its last use. A holder that ended or froze is replaced after this time. */
export const LEASE_LENGTH: Milliseconds = 60_000;

/** Another node has taken the lease. The transaction must be rolled back. */
export class LeaseLost extends Error {
  constructor() {
    super("Another node has taken the lease");
    this.name = "LeaseLost";
  }
}

/** What a process says of itself to take a lease. */
export interface LeaseRequest extends Pick<Lease, "name" | "holder"> {
  /** Names of processes that have ended. A lease of theirs is taken before it expires. */
  formerHolders?: readonly string[];
  /** What another node has not renewed for too long. It is taken before it expires. */
  abandoned?: LeaseOfOther | undefined;
  now: Instant;
}

/** A lease that another node has. */
export interface LeaseOfOther extends Pick<Lease, "token"> {
  /** By the clock that was read when it was renewed, in epoch milliseconds. */
  expiresAt: number;
}

/**
 * Takes a lease that has expired. Undefined while another node has it. Never waits for a transaction of its holder. On
 * PostgreSQL, the clock of the database decides.
 */
export async function takeLease(
  sql: Sql,
  { name, holder, formerHolders = [], abandoned, now }: LeaseRequest,
): Promise<Lease | undefined> {
  const time = sql.dialect.time.common(now);
  const { skipping } = sql.dialect.locks;
  const { rows } = await raw<{ token: number }>`
    update leases set holder = ${holder}, token = token + 1, expires_at = ${time} + ${LEASE_LENGTH}
    where name in (
      select name from leases where name = ${name} and (
        expires_at <= ${time} or ${sql.dialect.values.isOneOf("holder", formerHolders)}
        or (token = ${abandoned?.token ?? -1} and expires_at = ${abandoned?.expiresAt ?? -1})
      ) ${skipping}
    )
    returning token`.execute(sql.db);
  return rows[0] && { name, holder, token: Number(rows[0].token) };
}

async function leaseOfOther({ db }: Sql, name: string): Promise<LeaseOfOther | undefined> {
  const row = await db.selectFrom("leases").selectAll().where("name", "=", name).executeTakeFirst();
  return row && { token: Number(row.token), expiresAt: Number(row.expires_at) };
}

/**
 * Renews a lease, in the transaction of the work that it allows: the row stays locked until that work is committed or
 * rolled back, so a node that froze in between, and wakes after another one took over, changes nothing.
 *
 * @throws {LeaseLost}
 */
export async function holdLease(sql: Sql, { name, holder, token }: Lease, now: Instant): Promise<void> {
  const { rows } = await raw<{ token: number }>`
    update leases set expires_at = ${sql.dialect.time.common(now)} + ${LEASE_LENGTH}
    where name = ${name} and holder = ${holder} and token = ${token} returning token`.execute(sql.db);
  if (rows.length === 0) throw new LeaseLost();
}

/** Lets another node take the lease at once. */
export async function releaseLease({ db }: Sql, { name, holder, token }: Lease): Promise<void> {
  await raw`update leases set expires_at = 0 where name = ${name} and holder = ${holder} and token = ${token}`.execute(
    db,
  );
}

/** The procedures of leases. */
export const leaseProcedures = {
  reading: {},
  writing: {
    /** The lease, or what another node has. */
    takeLease: async (sql: Sql, wanted: LeaseRequest) =>
      (await takeLease(sql, wanted)) ?? (await leaseOfOther(sql, wanted.name)),
    renewLease: (sql: Sql, { lease, now }: { lease: Lease; now: Instant }) => holdLease(sql, lease, now),
    releaseLease: (sql: Sql, lease: Lease) => releaseLease(sql, lease),
  },
};
