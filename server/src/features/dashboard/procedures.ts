import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";
import { rootKeyRecord } from "../../../../engine/src/directory/records.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import { type RecordedChange, rootKeyInTransaction } from "../../platform/rpc/execute.ts";
import { type PlainPrincipal, requireUsable } from "../../platform/rpc/principal.ts";
import { type PlainProblem, Problem, plainProblem } from "../../platform/rpc/problems.ts";
import { findRootKey, type StoredRootKey } from "../../platform/store/access/root-key-lookup.ts";
import { recordChange } from "../../platform/store/audit/audit.ts";
import { insertChange } from "../../platform/store/changes.ts";
import { type PoolsOf, Rollback, type Sql } from "../../platform/store/store.ts";
import { type ChangesQuestion, changedKinds } from "./changed-kinds.ts";
import {
  createSession,
  findSessions,
  isSessionLive,
  redeemLink,
  type SignIn,
  type StoredSession,
  touchSession,
} from "./statements.ts";

/** A new session with its token, or why there is none. `change`: it ended others. */
export type SignedIn =
  | { token: string; stored: StoredSession; change: RecordedChange | null }
  | { problem: PlainProblem };

/** Publishes the end of sessions to every node; null if there is none. */
async function publishEnd(
  sql: Sql,
  sessionIds: string[],
  now: Instant,
  workspaceId: string,
): Promise<RecordedChange | null> {
  if (sessionIds.length === 0) return null;
  return { tags: sessionIds, sequence: await insertChange(sql, sessionIds, now, workspaceId) };
}

/** The kind of sessions of the dashboard. */
export const DASHBOARD = "dashboard";

/** The principal of a session as this transaction sees it. @throws {Problem} if it or its root key has ended. */
export async function dashboardCallerInTransaction(
  sql: Sql,
  caller: PlainPrincipal,
  now: Instant,
): Promise<PlainPrincipal> {
  const rootKey = await rootKeyInTransaction(sql, caller, now);
  const { session } = caller;
  if (!(await isSessionLive(sql, session!.id, now))) throw new Problem("authentication_failed");
  return { ...rootKey, session: session! };
}

/** The procedures of sessions of the dashboard. */
export function sessionProcedures({ random, secrets }: { random: Random; secrets: SecretSource }) {
  const audit = (
    sql: Sql,
    action: string,
    rootKey: { id: string; workspace_id: string },
    sessionId: string,
    now: Instant,
  ) =>
    recordChange(
      sql,
      {
        workspaceId: rootKey.workspace_id,
        occurredAt: now,
        actor: rootKey.id,
        action,
        targets: [sessionId, rootKey.id],
        meta: { session: sessionId },
        events: [],
      },
      random,
    );

  async function signIn(
    sql: Sql,
    rootKey: StoredRootKey | undefined,
    given: SignIn,
  ): Promise<SignedIn | Rollback<SignedIn>> {
    try {
      requireUsable(rootKey === undefined ? null : rootKeyRecord(rootKey).record, given.now);
      const { token, stored, ended } = (await createSession(sql, given, { random, secrets }))!;
      await audit(sql, "dashboard.signIn", rootKey!, stored.session.id, given.now);
      return { token, stored, change: await publishEnd(sql, ended, given.now, stored.session.workspace_id) };
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return new Rollback({ problem: plainProblem(error) });
    }
  }

  const procedures = {
    reading: {
      sessionsByHashes: (sql: Sql, { hashes, now }: { hashes: readonly string[]; now: Instant }) =>
        findSessions(sql, hashes, now),
      changedKinds: (sql: Sql, questions: readonly ChangesQuestion[]) => changedKinds(sql, questions),
    },
    writing: {
      signIn: async (sql: Sql, given: SignIn) => signIn(sql, await findRootKey(sql, given.rootKeyId), given),
      /** Null if the link is not valid. */
      signInByLink: async (sql: Sql, { linkHash, ...given }: Omit<SignIn, "rootKeyId"> & { linkHash: string }) => {
        const rootKey = await redeemLink(sql, { hash: linkHash, now: given.now });
        if (rootKey === undefined) return null;
        return signIn(sql, rootKey, { ...given, rootKeyId: rootKey.id });
      },
      touchSession,
      /** Null if there is no such session. */
      signOut: async (sql: Sql, { hash, now }: { hash: string; now: Instant }): Promise<RecordedChange | null> => {
        const session = await sql.db.deleteFrom("sessions").where("hash", "=", hash).returningAll().executeTakeFirst();
        if (session === undefined) return null;
        const { root_key_id: id, workspace_id } = session;
        await audit(sql, "dashboard.signOut", { id, workspace_id }, session.id, now);
        return publishEnd(sql, [session.id], now, workspace_id);
      },
    },
  };
  const pools: PoolsOf<typeof procedures> = { sessionsByHashes: "lookup", changedKinds: "maintenance" };
  return { ...procedures, pools };
}
