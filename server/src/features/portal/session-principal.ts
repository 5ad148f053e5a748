import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { rootKeyRecord } from "../../../../engine/src/directory/records.ts";
import type { DirectoryPortalSession } from "../../../../engine/src/directory/stored.ts";
import { compileGrants, meets } from "../../../../engine/src/rules/grants.ts";
import { type PlainPrincipal, requireUsable } from "../../platform/rpc/principal.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { Sql } from "../../platform/store/store.ts";
import { PORTAL, type PortalCaller } from "./portal-caller.ts";
import { findPortalSession } from "./statements.ts";
import { type PortalTerms, portalGrants } from "./terms.ts";

/** The principal of a session as this transaction sees it. @throws {Problem} if the session has ended. */
export async function portalCallerInTransaction(
  sql: Sql,
  { session }: PlainPrincipal,
  now: Instant,
): Promise<PlainPrincipal> {
  const stored = await findPortalSession(sql, session!.id, now);
  if (stored === undefined) throw ended();
  return portalPrincipal(stored, now);
}

/** The principal of a stored session. @throws {Problem} if it has ended. */
export function portalPrincipal(
  { session, rootKey, externalId }: DirectoryPortalSession,
  now: Instant,
): PlainPrincipal {
  if (now >= session.expires_at) throw ended();
  const { record } = rootKeyRecord(rootKey);
  try {
    requireUsable(record, now);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // The holder of the session learns nothing about the root key.
    throw ended();
  }
  const terms: PortalTerms = JSON.parse(session.terms);
  const granted = compileGrants(record.grants);
  const caller: PortalCaller = {
    kind: PORTAL,
    audience: PORTAL,
    id: session.id,
    apiId: session.api_id,
    identityId: session.identity_id,
    externalId,
    terms,
    page: JSON.parse(session.page),
    expiresAt: session.expires_at,
  };
  return {
    rootKeyId: rootKey.id,
    workspaceId: session.workspace_id,
    grants: portalGrants(terms, session.api_id).filter((grant) => meets(granted, grant)),
    session: caller,
  };
}

/** The problem of a token of no session. */
export function ended(): Problem {
  return new Problem("authentication_failed", "The session has ended, or its token is not valid. Open a new one.");
}
