import type { Instant } from "../clock/clock.ts";
import type { CallDirectories } from "../directory/directories.ts";
import { rootKeyRecord } from "../directory/records.ts";
import type { DirectoryPortalSession } from "../directory/stored.ts";
import type { Limiter } from "../limits/limiter.ts";
import { compileGrants, meets } from "../rules/grants.ts";
import { type PortalTerms, portalGrants } from "../rules/portal-terms.ts";
import { isPortalToken } from "../rules/session-token.ts";
import { findPortalSession } from "../store/portal/portal-sessions.ts";
import type { Sql } from "../store/store.ts";
import { findSession, type SessionSource } from "./find-session.ts";
import { type PlainPrincipal, Principal, requireUsable } from "./principal.ts";
import { Problem } from "./problems.ts";
import { admitCall } from "./workspace-limit.ts";

const BEARER = /^bearer +(\S{1,100})$/i;

/** Calls per minute of one session: a person makes some tens. */
const REQUESTS_PER_MINUTE = 300;

export interface PortalSessionsOptions extends SessionSource {
  directories: CallDirectories;
  limiter: Limiter;
}

/**
 * Sessions of the portal. A session has those permissions of its terms that the root key which created it has. It ends
 * when it, its root key, its API or its owner is deleted, and when the root key is disabled or expires: at once on the
 * node of the change, within a second on others.
 */
export class PortalSessions {
  readonly #options: PortalSessionsOptions;

  constructor(options: PortalSessionsOptions) {
    this.#options = options;
  }

  /**
   * The principal of the session whose token is in the header `Authorization`. Counts the call against the limit of the
   * session.
   *
   * @throws {Problem} without a token, if the session has ended, or beyond its limit.
   */
  async authenticate(authorization: string | undefined, address: string): Promise<Principal> {
    if (authorization === undefined || authorization.trim() === "") {
      throw new Problem(
        "authentication_missing",
        "There is no session. Send its token as `Authorization: Bearer <token>`.",
      );
    }
    const token = BEARER.exec(authorization.trim())?.[1];
    if (token === undefined || !isPortalToken(token)) throw ended();
    const { clock, directories, limiter } = this.#options;
    const record = await findSession(token, address, directories.portalSessions, this.#options);
    if (record === null) throw ended();
    const { stored } = record;
    const principal = new Principal(portalPrincipal(stored, clock.now()), stored.rootKey.workspace_requests_per_minute);
    await admitSession(stored.session, limiter);
    return principal;
  }
}

/** Counts a call against the limit of its session. */
function admitSession(session: { id: string; workspace_id: string }, limiter: Limiter): Promise<void> {
  return admitCall(
    { counter: `p\0${session.id}`, limit: REQUESTS_PER_MINUTE, owner: session.workspace_id },
    `This session has reached its limit of ${REQUESTS_PER_MINUTE} requests per minute.`,
    limiter,
  );
}

/** The principal of a session as this transaction sees it. @throws {Problem} if the session has ended. */
export async function portalPrincipalInTransaction(sql: Sql, sessionId: string, now: Instant): Promise<PlainPrincipal> {
  const stored = await findPortalSession(sql, sessionId, now);
  if (stored === undefined) throw ended();
  return portalPrincipal(stored, now);
}

function portalPrincipal({ session, rootKey, externalId }: DirectoryPortalSession, now: Instant): PlainPrincipal {
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
  return {
    rootKeyId: rootKey.id,
    workspaceId: session.workspace_id,
    grants: portalGrants(terms, session.api_id).filter((grant) => meets(granted, grant)),
    portal: {
      ...{ sessionId: session.id, apiId: session.api_id, identityId: session.identity_id, externalId, terms },
      ...{ page: JSON.parse(session.page), expiresAt: session.expires_at },
    },
  };
}

function ended(): Problem {
  return new Problem("authentication_failed", "The session has ended, or its token is not valid. Open a new one.");
}
