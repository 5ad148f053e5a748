import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import { newPortalToken } from "../../../../engine/src/rules/session-token.ts";
import { findRootKeys, type StoredRootKey } from "../../platform/store/access/root-key-lookup.ts";
import { findTokenKey } from "../../platform/store/access/token-key.ts";
import { onePage, type PageOptions } from "../../platform/store/page.ts";
import { byTime, type RetentionTask } from "../../platform/store/retention.ts";
import type { PortalSessionRow } from "../../platform/store/schema.ts";
import type { Sql } from "../../platform/store/store.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";

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

/** A session by its id; undefined if it has ended: expired or deleted, or its root key, API or owner was deleted. */
export async function findPortalSession(sql: Sql, id: string, now: Instant): Promise<StoredPortalSession | undefined> {
  const rows = await selectLive(sql, now).where("portal_sessions.id", "=", id).execute();
  return (await withRootKeys(sql, rows))[0];
}

/** The sessions with these hashes of their tokens, without those that have ended. */
export async function findPortalSessions(
  sql: Sql,
  hashes: readonly string[],
  now: Instant,
): Promise<StoredPortalSession[]> {
  const rows = await selectLive(sql, now).where(sql.dialect.values.isOneOf("portal_sessions.hash", hashes)).execute();
  return withRootKeys(sql, rows);
}

async function withRootKeys(sql: Sql, rows: readonly ListedPortalSession[]): Promise<StoredPortalSession[]> {
  if (rows.length === 0) return [];
  const ids = new Set(rows.map(({ root_key_id }) => root_key_id));
  const rootKeys = new Map((await findRootKeys(sql, [...ids])).map((rootKey) => [rootKey.id, rootKey]));
  return rows.flatMap(({ external_id: externalId, ...session }) => {
    const rootKey = rootKeys.get(session.root_key_id);
    return rootKey === undefined ? [] : [{ session, rootKey, externalId }];
  });
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
  static readonly writes = true;

  /** A token for a new session. */
  async newToken(secrets: SecretSource): Promise<string> {
    return newPortalToken(await findTokenKey(this.sql), secrets);
  }

  /** Inserts a session; returns its id. Ends the oldest ones of the owner beyond the maximum, and returns their ids. */
  async insert(
    session: Omit<PortalSessionRow, "id" | "workspace_id">,
    random: Random,
  ): Promise<{ id: string; ended: string[] }> {
    const id = newId(random, "ps");
    const ended = await this.#deleteBeyond(session.identity_id, SESSIONS_PER_IDENTITY_MAX - 1);
    await this.sql.db
      .insertInto("portal_sessions")
      .values({ ...session, id, workspace_id: this.workspaceId })
      .execute();
    return { id, ended };
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

  /** Keeps the newest sessions of an owner; returns the ids of the others. */
  async #deleteBeyond(identityId: string, max: number): Promise<string[]> {
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
    return superfluous.map(({ id }) => id);
  }
}

/** Deletes expired sessions. */
export const portalSessionRetention: RetentionTask = {
  keep: () => 0,
  ...byTime("portal_sessions", "id", "expires_at"),
  limit: 500,
};
