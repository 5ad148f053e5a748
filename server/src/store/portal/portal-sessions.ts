import type { Instant } from "../../clock/clock.ts";
import { newId, type Random } from "../../random/random.ts";
import { findRootKey, type StoredRootKey } from "../administration/root-keys.ts";
import { onePage, type PageOptions } from "../page.ts";
import type { PortalSessionRow } from "../schema.ts";
import type { Sql } from "../store.ts";
import { WorkspaceRows } from "../workspace-rows.ts";

/** Beyond these, a new session ends the oldest ones of its owner. */
const SESSIONS_PER_IDENTITY_MAX = 20;
/** The most sessions that one call ends. One is enough, unless a limit was lowered. */
const ENDED_PER_CALL_MAX = 100;

/** A session that has not ended, with the root key that created it. */
export interface StoredPortalSession {
  session: PortalSessionRow;
  rootKey: StoredRootKey;
  externalId: string;
}

/** A session with the external id of its owner. */
export type ListedPortalSession = PortalSessionRow & { external_id: string };

/** Which sessions of a workspace to select. Members that are absent select all. */
export interface PortalSessionFilter {
  apiId?: string | undefined;
  identityId?: string | undefined;
  sessionId?: string | undefined;
}

/**
 * A session by the hash of its token or by its id; undefined if it has ended: expired or deleted, or its root key, API or
 * owner was deleted.
 */
export async function findPortalSession(
  sql: Sql,
  by: { hash: string } | { id: string },
  now: Instant,
): Promise<StoredPortalSession | undefined> {
  const live = selectLive(sql, now);
  const row = await ("hash" in by
    ? live.where("portal_sessions.hash", "=", by.hash)
    : live.where("portal_sessions.id", "=", by.id)
  ).executeTakeFirst();
  if (row === undefined) return undefined;
  const rootKey = await findRootKey(sql, row.root_key_id);
  if (rootKey === undefined) return undefined;
  const { external_id: externalId, ...session } = row;
  return { session, rootKey, externalId };
}

function selectLive(sql: Sql, now: Instant) {
  return sql.db
    .selectFrom("portal_sessions")
    .innerJoin("identities", "identities.id", "portal_sessions.identity_id")
    .innerJoin("apis", "apis.id", "portal_sessions.api_id")
    .selectAll("portal_sessions")
    .select("identities.external_id")
    .where("identities.deleted_at", "is", null)
    .where("apis.deleted_at", "is", null)
    .where("portal_sessions.expires_at", ">", now);
}

/** The sessions of one workspace that have not ended. */
export class PortalSessionReader extends WorkspaceRows {
  page(
    { apiId, identityId, now }: PortalSessionFilter & { now: Instant },
    place: Pick<PageOptions, "from" | "limit">,
  ): Promise<ListedPortalSession[]> {
    let query = selectLive(this.sql, now).where("portal_sessions.workspace_id", "=", this.workspaceId);
    if (apiId !== undefined) query = query.where("portal_sessions.api_id", "=", apiId);
    if (identityId !== undefined) query = query.where("portal_sessions.identity_id", "=", identityId);
    return onePage(query, place, "portal_sessions").execute();
  }
}

export class PortalSessionWriter extends PortalSessionReader {
  /** Inserts a session; returns its id. Ends the oldest ones of the owner beyond the maximum. */
  async insert(session: Omit<PortalSessionRow, "id" | "workspace_id">, random: Random): Promise<string> {
    const id = newId(random, "ps");
    await this.#deleteBeyond(session.identity_id, SESSIONS_PER_IDENTITY_MAX - 1);
    await this.sql.db
      .insertInto("portal_sessions")
      .values({ ...session, id, workspace_id: this.workspaceId })
      .execute();
    return id;
  }

  /** Deletes the selected sessions; returns their number. */
  async delete({ apiId, identityId, sessionId }: PortalSessionFilter): Promise<number> {
    let query = this.sql.db.deleteFrom("portal_sessions").where("workspace_id", "=", this.workspaceId);
    if (apiId !== undefined) query = query.where("api_id", "=", apiId);
    if (identityId !== undefined) query = query.where("identity_id", "=", identityId);
    if (sessionId !== undefined) query = query.where("id", "=", sessionId);
    const { numDeletedRows } = await query.executeTakeFirst();
    return Number(numDeletedRows);
  }

  /** Keeps the newest sessions of an owner. */
  async #deleteBeyond(identityId: string, max: number): Promise<void> {
    const superfluous = await this.sql.db
      .selectFrom("portal_sessions")
      .select("id")
      .where("identity_id", "=", identityId)
      .where("workspace_id", "=", this.workspaceId)
      .orderBy("created_at", "desc")
      .orderBy("id", "desc")
      .limit(ENDED_PER_CALL_MAX)
      .offset(max)
      .execute();
    for (const { id } of superfluous) await this.sql.db.deleteFrom("portal_sessions").where("id", "=", id).execute();
  }
}
