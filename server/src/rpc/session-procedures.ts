import type { Instant } from "../clock/clock.ts";
import type { SecretSource } from "../crypto/secret.ts";
import { rootKeyRecord } from "../directory/records.ts";
import type { Random } from "../random/random.ts";
import { recordChange } from "../store/administration/audit.ts";
import { findRootKey, type StoredRootKey } from "../store/administration/root-keys.ts";
import {
  createSession,
  findSession,
  redeemLink,
  type SignIn,
  type StoredSession,
  touchSession,
} from "../store/administration/sessions.ts";
import { findPortalSession } from "../store/portal/portal-sessions.ts";
import { Rollback, type Sql } from "../store/store.ts";
import { requireUsable } from "./principal.ts";
import { type PlainProblem, Problem, plainProblem } from "./problems.ts";

/** A new session with its token, or why there is none. */
export type SignedIn = { token: string; stored: StoredSession } | { problem: PlainProblem };

/** The procedures of sessions of the dashboard and of the portal. */
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
      const created = await createSession(sql, given, { random, secrets });
      await audit(sql, "dashboard.signIn", rootKey!, created!.stored.session.id, given.now);
      return created!;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return new Rollback({ problem: plainProblem(error) });
    }
  }

  return {
    reading: {
      findSession: (sql: Sql, { hash, now }: { hash: string; now: Instant }) => findSession(sql, hash, now),
      findPortalSession: async (sql: Sql, { hash, now }: { hash: string; now: Instant }) =>
        (await findPortalSession(sql, { hash }, now)) ?? null,
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
      signOut: async (sql: Sql, { hash, now }: { hash: string; now: Instant }) => {
        const session = await sql.db.deleteFrom("sessions").where("hash", "=", hash).returningAll().executeTakeFirst();
        if (session === undefined) return;
        const { root_key_id: id, workspace_id } = session;
        await audit(sql, "dashboard.signOut", { id, workspace_id }, session.id, now);
      },
    },
  };
}
