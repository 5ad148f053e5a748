import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import { newDashboardToken } from "../../../../engine/src/rules/session-token.ts";
import { findRootKey, findRootKeys, type StoredRootKey } from "../../platform/store/access/root-key-lookup.ts";
import { findTokenKey } from "../../platform/store/access/token-key.ts";
import { onePage, type PageOptions } from "../../platform/store/page.ts";
import { byTime, type RetentionTask } from "../../platform/store/retention.ts";
import type { SessionRow } from "../../platform/store/schema.ts";
import type { Sql } from "../../platform/store/store.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";

const HOUR = 3_600_000;

/** A session ends after this time without a call. */
const SESSION_IDLE_MAX: Milliseconds = 12 * HOUR;
/** A session ends after this time in any case. */
export const SESSION_LIFE: Milliseconds = 30 * 24 * HOUR;
/** How long a link signs in. */
export const LINK_LIFE: Milliseconds = HOUR / 6;

const SESSIONS_PER_ROOT_KEY_MAX = 20;
const SESSIONS_PER_WORKSPACE_MAX = 500;
const LINKS_PER_ROOT_KEY_MAX = 5;
const TOKEN_BYTES = 32;
const USER_AGENT_LENGTH_MAX = 200;

/** A session with its root key, and what the dashboard shows of its workspace. */
export interface StoredSession {
  session: SessionRow;
  rootKey: StoredRootKey;
  workspaceName: string;
}

/** Who signs in. */
export interface SignIn {
  rootKeyId: string;
  address: string;
  userAgent: string;
  now: Instant;
}

/** When a session ends if it is not used again. */
export function sessionEnd({ last_used_at, expires_at }: Pick<SessionRow, "last_used_at" | "expires_at">): number {
  return Math.min(expires_at, last_used_at + SESSION_IDLE_MAX);
}

/** The sessions with these hashes of their tokens, without those that have ended or whose root key was deleted. */
export async function findSessions(sql: Sql, hashes: readonly string[], now: Instant): Promise<StoredSession[]> {
  const rows = await sql.db
    .selectFrom("sessions")
    .selectAll()
    .where(sql.dialect.values.isOneOf("hash", hashes))
    .execute();
  return withRootKeys(
    sql,
    rows.filter((session) => now < sessionEnd(session)),
  );
}

/** Whether a session exists that has not ended. */
export async function isSessionLive(sql: Sql, sessionId: string, now: Instant): Promise<boolean> {
  const session = await sql.db.selectFrom("sessions").selectAll().where("id", "=", sessionId).executeTakeFirst();
  return session !== undefined && now < sessionEnd(session);
}

async function withRootKeys(sql: Sql, sessions: readonly SessionRow[]): Promise<StoredSession[]> {
  if (sessions.length === 0) return [];
  const ids = new Set(sessions.map(({ root_key_id }) => root_key_id));
  const rootKeys = new Map((await findRootKeys(sql, [...ids])).map((rootKey) => [rootKey.id, rootKey]));
  const workspaceIds = new Set(sessions.map(({ workspace_id }) => workspace_id));
  const workspaces = await sql.db
    .selectFrom("workspaces")
    .select(["id", "name"])
    .where(sql.dialect.values.isOneOf("id", [...workspaceIds]))
    .execute();
  const names = new Map(workspaces.map(({ id, name }) => [id, name]));
  return sessions.flatMap((session) => {
    const rootKey = rootKeys.get(session.root_key_id);
    return rootKey === undefined ? [] : [{ session, rootKey, workspaceName: names.get(session.workspace_id)! }];
  });
}

/** A new session. Only this result contains its token. */
export interface NewSession {
  token: string;
  stored: StoredSession;
  /** The ids of sessions that it ended. */
  ended: string[];
}

/**
 * Creates a session, and deletes the least recently used ones of the root key and the oldest of the workspace beyond the
 * maximum. Undefined if the root key does not exist.
 */
export async function createSession(
  sql: Sql,
  { rootKeyId, address, userAgent, now }: SignIn,
  { random, secrets }: { random: Random; secrets: SecretSource },
): Promise<NewSession | undefined> {
  const rootKey = await findRootKey(sql, rootKeyId);
  if (rootKey === undefined) return undefined;
  // So that sign-ins at once do not exceed the maximum together.
  const row = sql.db.selectFrom("root_keys").select("id").where("id", "=", rootKeyId);
  await sql.dialect.locks.lockRows(row, "no key update");
  const token = newDashboardToken(await findTokenKey(sql), secrets);
  const session: SessionRow = {
    id: newId(random, "ses"),
    workspace_id: rootKey.workspace_id,
    root_key_id: rootKeyId,
    hash: hashSecret(token),
    address,
    user_agent: userAgent.slice(0, USER_AGENT_LENGTH_MAX).toWellFormed().replaceAll("\0", ""),
    created_at: now,
    last_used_at: now,
    expires_at: now + SESSION_LIFE,
  };
  const ended = [
    ...(await deleteBeyond(sql, "root_key_id", rootKeyId, SESSIONS_PER_ROOT_KEY_MAX - 1)),
    ...(await deleteBeyond(sql, "workspace_id", rootKey.workspace_id, SESSIONS_PER_WORKSPACE_MAX - 1)),
  ];
  await sql.db.insertInto("sessions").values(session).execute();
  const [stored] = await withRootKeys(sql, [session]);
  return { token, stored: stored!, ended };
}

/** Keeps the newest sessions of a root key or of a workspace; returns the ids of the others. */
async function deleteBeyond(
  sql: Sql,
  column: "root_key_id" | "workspace_id",
  id: string,
  max: number,
): Promise<string[]> {
  const order = column === "root_key_id" ? "last_used_at" : "created_at";
  const { db } = sql;
  const superfluous = await db
    .selectFrom("sessions")
    .select("id")
    .where(column, "=", id)
    .orderBy(order, "desc")
    // SQLite has no offset without a limit.
    .limit(SESSIONS_PER_WORKSPACE_MAX)
    .offset(max)
    .execute();
  for (const { id } of superfluous) await db.deleteFrom("sessions").where("id", "=", id).execute();
  return superfluous.map(({ id }) => id);
}

export async function touchSession(sql: Sql, { sessionId, now }: { sessionId: string; now: Instant }): Promise<void> {
  await sql.db
    .updateTable("sessions")
    .set({ last_used_at: now })
    .where("id", "=", sessionId)
    .where("last_used_at", "<", now)
    .execute();
}

/** Creates a link that signs in as a root key. Only this result contains its token. */
export async function createLink(
  { db }: Sql,
  { rootKeyId, now }: { rootKeyId: string; now: Instant },
  secrets: SecretSource,
): Promise<{ token: string; expiresAt: number }> {
  const superfluous = await db
    .selectFrom("sign_in_links")
    .select("hash")
    .where("root_key_id", "=", rootKeyId)
    .orderBy("expires_at", "desc")
    .limit(LINKS_PER_ROOT_KEY_MAX)
    .offset(LINKS_PER_ROOT_KEY_MAX - 1)
    .execute();
  for (const { hash } of superfluous) await db.deleteFrom("sign_in_links").where("hash", "=", hash).execute();
  const token = Buffer.from(secrets(TOKEN_BYTES)).toString("base64url");
  const expires_at = now + LINK_LIFE;
  await db
    .insertInto("sign_in_links")
    .values({ hash: hashSecret(token), root_key_id: rootKeyId, expires_at })
    .execute();
  return { token, expiresAt: expires_at };
}

/** Deletes a link; returns its root key if the link was still valid. */
export async function redeemLink(
  sql: Sql,
  { hash, now }: { hash: string; now: Instant },
): Promise<StoredRootKey | undefined> {
  const link = await sql.db.deleteFrom("sign_in_links").where("hash", "=", hash).returningAll().executeTakeFirst();
  return link && now < link.expires_at ? findRootKey(sql, link.root_key_id) : undefined;
}

/** The sessions of one workspace that have not ended. */
export class SessionReader extends WorkspaceRows {
  page(
    { rootKeyId, now }: { rootKeyId: string | undefined; now: Instant },
    place: Pick<PageOptions, "from" | "limit">,
  ): Promise<SessionRow[]> {
    let query = this.#select()
      .where("last_used_at", ">", now - SESSION_IDLE_MAX)
      .where("expires_at", ">", now);
    if (rootKeyId !== undefined) query = query.where("root_key_id", "=", rootKeyId);
    return onePage(query, place).execute();
  }

  #select() {
    return this.sql.db.selectFrom("sessions").selectAll().where("workspace_id", "=", this.workspaceId);
  }
}

export class SessionWriter extends SessionReader {
  static readonly writes = true;

  /** Deletes the sessions of a root key, or one of them; returns their ids. */
  async delete(rootKeyId: string, sessionId: string | undefined): Promise<string[]> {
    let query = this.sql.db
      .deleteFrom("sessions")
      .where("root_key_id", "=", rootKeyId)
      .where("workspace_id", "=", this.workspaceId);
    if (sessionId !== undefined) query = query.where("id", "=", sessionId);
    return (await query.returning("id").execute()).map(({ id }) => id);
  }
}

/** Deletes sessions that nobody can use any more. */
export const sessionRetention: RetentionTask = {
  keep: () => SESSION_IDLE_MAX,
  ...byTime("sessions", "id", "last_used_at"),
  limit: 500,
};

/** Deletes expired links. */
export const signInLinkRetention: RetentionTask = {
  keep: () => 0,
  ...byTime("sign_in_links", "hash", "expires_at"),
  limit: 500,
};
