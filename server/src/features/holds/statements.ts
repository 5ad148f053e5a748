import { sql as raw, type SelectQueryBuilder } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { HoldState } from "../../../../engine/src/credits/hold.ts";
import type { StoreRules } from "../../platform/store/inspection.ts";
import { demandStep } from "../../platform/store/migrate.ts";
import { onlyRow } from "../../platform/store/only-row.ts";
import { onePage, type PageOptions } from "../../platform/store/page.ts";
import type { RetentionPlace, RetentionTask } from "../../platform/store/retention.ts";
import type { HoldRow, Schema } from "../../platform/store/schema.ts";
import type { Sql } from "../../platform/store/store.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";
import { commonTime, EXPIRY_DELAY_MAX } from "../credits/statements/common-time.ts";
import { type ExpiryPlace, findOpenHolds } from "../credits/statements/holds.ts";
import {
  type ListedHold,
  ownerColumns,
  type ShownHold,
  type SubjectRow,
  shownColumns,
  subjectColumns,
} from "./record.ts";

interface HoldPage extends Pick<PageOptions, "from" | "limit"> {
  order: "asc" | "desc";
}

function inPage<O>(holds: SelectQueryBuilder<Schema, "holds", O>, { order, from, limit }: HoldPage) {
  if (order === "asc") return onePage(holds, { from, limit });
  const page = holds.orderBy("created_at", "desc").orderBy("id", "desc").limit(limit);
  return from === undefined ? page : page.where(raw<boolean>`(created_at, id) <= (${from.at}, ${from.id})`);
}

/** The holds of one workspace. */
export class HoldReader extends WorkspaceRows {
  async find(holdId: string): Promise<HoldRow | undefined> {
    return this.#holds().selectAll().where("id", "=", holdId).executeTakeFirst();
  }

  /** Some of the list, by the time of creation. */
  async scan(page: HoldPage): Promise<ShownHold[]> {
    return inPage(this.#holds().select(shownColumns), page).execute();
  }

  /** The same, with whose they are. */
  async scanOwned(page: HoldPage): Promise<ListedHold[]> {
    return inPage(this.#holds().select([...shownColumns, ...ownerColumns]), page).execute();
  }

  #holds() {
    return this.sql.db.selectFrom("holds").where("workspace_id", "=", this.workspaceId);
  }
}

/** What is needed to change these holds, of all workspaces, by id. */
export async function findHoldSubjects(
  { db, dialect }: Sql,
  { ids }: { ids: readonly string[] },
): Promise<Map<string, SubjectRow>> {
  const rows = await db.selectFrom("holds").select(subjectColumns).where(dialect.values.isOneOf("id", ids)).execute();
  return new Map(rows.map((row) => [row.id, row]));
}

/** Whether holds can be stored: programs of earlier releases do not know what they leave in the books. */
export function acceptHolds(sql: Sql): Promise<boolean> {
  return demandStep(sql, "038-holds");
}

/** The open holds of a workspace, by key. */
export async function countOpenHolds(
  { db, dialect }: Sql,
  { workspaceId, now }: { workspaceId: string; now: Instant },
): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom("holds")
    .select(["key_id", ({ fn }) => fn.countAll<number>().as("count")])
    .where("workspace_id", "=", workspaceId)
    // By an index: most closed holds are older, and those of other workspaces are not read.
    .where("expires_at", ">", raw<number>`${dialect.time.common(now)} - ${EXPIRY_DELAY_MAX}`)
    .where("state", "=", "open")
    .groupBy("key_id")
    .execute();
  return new Map(rows.map(({ key_id, count }) => [key_id, Number(count)]));
}

/** Which expired holds to find. */
export interface HoldSearch {
  after: ExpiryPlace;
  now: Instant;
  limit: number;
}

/** Open holds that have expired, and the time by the clock of the holds. */
export async function findExpiredHolds(sql: Sql, { after, now, limit }: HoldSearch) {
  const at = await commonTime(sql, now);
  return { ...(await findOpenHolds(sql, { after, until: at, limit })), at };
}

/** The most rows that a step of retention looks at, whatever their state. */
const LOOKED_AT_MAX = 10_000;

/**
 * Deletes holds in these states, some time after their expiry and after they were closed. Those in other states lie among
 * them, because no index has the state: so it looks through all of them, and continues where it ended.
 */
function holdRetention(states: readonly HoldState[], keep: RetentionTask["keep"]): RetentionTask {
  const isOld = (before: Instant) => raw<boolean>`closed_at < ${before} and state in (${raw.join(states)})`;
  const lookedAt = ({ db }: Sql, before: Instant, { at, id }: RetentionPlace) =>
    db
      .selectFrom("holds")
      .select(["id", "expires_at", "closed_at", "state"])
      .where(raw<boolean>`(expires_at, id) > (${at}, ${id})`)
      .where("expires_at", "<", before)
      .orderBy("expires_at")
      .orderBy("id");
  return {
    keep,
    async oldest(sql, before, after) {
      const rows = lookedAt(sql, before, after).limit(LOOKED_AT_MAX);
      const found = await raw<{ count: number; at: number | null }>`
        select count(*) as count, min(case when ${isOld(before)} then expires_at end) as at from ${rows} as looked_at
      `.execute(sql.db);
      const { count, at } = onlyRow(found);
      if (Number(count) === 0) return null;
      return at === null ? before : Number(at);
    },
    async step(sql, before, limit, after) {
      const last = await lookedAt(sql, before, after)
        .offset(LOOKED_AT_MAX - 1)
        .limit(1)
        .executeTakeFirst();
      let query = lookedAt(sql, before, after).where(isOld(before)).limit(limit);
      if (last) query = query.where(raw<boolean>`(expires_at, id) <= (${last.expires_at}, ${last.id})`);
      // A late settlement may have locked one. Waiting for it could deadlock with a batch.
      const { rows } = await sql.dialect.locks.lockAvailable(query);
      const ids = rows.map(({ id }) => id);
      if (ids.length > 0) await sql.db.deleteFrom("holds").where(sql.dialect.values.isOneOf("id", ids)).execute();
      const end = rows.length === limit ? rows.at(-1) : last;
      return { deleted: ids.length, end: end ? { at: end.expires_at, id: end.id } : { at: before, id: "" } };
    },
    limit: 1_000,
  };
}

export const closedHoldsRetention = holdRetention(["settled", "released"], ({ holds }) => holds);
export const expiredHoldsRetention = holdRetention(["expired"], ({ expiredHolds }) => expiredHolds);

/** What holds for all holds. */
export const holdRules: StoreRules = {
  "a balance holds the credits or slots of its open holds": ({ dialect: { json } }) => raw`
    with claims as (
      select ${json.member(raw.ref("balance.value"), "id")} as balance_id,
        sum(case when ${json.member(raw.ref("balance.value"), "slot")} is null then cost else 1 end) as held
      from holds, ${json.elements(raw.ref("holds.balances"), "balance")} where state = 'open' group by 1
    )
    select count(*) as count from balances left join claims on claims.balance_id = balances.pool_id
    where coalesce(balances.held, 0) <> coalesce(claims.held, 0)`,
  "open holds have charged nothing, and others say what": `select count(*) as count from holds
    where (state = 'open') <> (closed_at is null) or (state = 'open') <> (charged is null)`,
};
