import type { Clock, Instant } from "../clock/clock.ts";
import { hashSecret } from "../crypto/hash.ts";
import { LookupBudget } from "../directory/budget.ts";
import { rootKeyRecord } from "../directory/records.ts";
import type { Limiter } from "../limits/limiter.ts";
import { addressNetwork } from "../rules/address.ts";
import { compileGrants, meets } from "../rules/grants.ts";
import { PORTAL_TOKEN_PREFIX } from "../rules/key-string.ts";
import { type PortalTerms, portalGrants } from "../rules/portal-terms.ts";
import { findPortalSession, type StoredPortalSession } from "../store/portal/portal-sessions.ts";
import type { Sql, Store } from "../store/store.ts";
import { type PlainPrincipal, Principal, requireUsable } from "./principal.ts";
import { Problem } from "./problems.ts";
import type { sessionProcedures } from "./session-procedures.ts";
import { admitSession } from "./workspace-limit.ts";

/** Look-ups of tokens that do not exist, per second, divided among the addresses that send them. */
const UNKNOWN_PER_SECOND = 50;

const BEARER = new RegExp(`^bearer +(${PORTAL_TOKEN_PREFIX}_[0-9A-Za-z]{20,60})$`, "i");

export interface PortalSessionsOptions {
  clock: Clock;
  store: Store<ReturnType<typeof sessionProcedures>>;
  limiter: Limiter;
}

/**
 * Sessions of the portal. A session has those permissions of its terms that the root key which created it has, and every
 * call reads both from the database: a session ends on every node when it, its root key, its API or its owner is deleted,
 * and when the root key is disabled or expires.
 */
export class PortalSessions {
  readonly #options: PortalSessionsOptions;
  readonly #unknown: LookupBudget;

  constructor(options: PortalSessionsOptions) {
    this.#options = options;
    this.#unknown = new LookupBudget(options.clock, UNKNOWN_PER_SECOND);
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
    if (token === undefined) throw ended();
    const { clock, store, limiter } = this.#options;
    const lookup = { hash: hashSecret(token), now: clock.now() };
    const stored = await this.#unknown.spend(addressNetwork(address), () => store.read("findPortalSession", lookup));
    if (stored === null) throw ended();
    const principal = new Principal(portalPrincipal(stored, clock.now()), stored.rootKey.workspace_requests_per_minute);
    await admitSession(stored.session, limiter);
    return principal;
  }
}

/** The principal of a session as this transaction sees it. @throws {Problem} if the session has ended. */
export async function portalPrincipalInTransaction(sql: Sql, sessionId: string, now: Instant): Promise<PlainPrincipal> {
  const stored = await findPortalSession(sql, { id: sessionId }, now);
  if (stored === undefined) throw ended();
  return portalPrincipal(stored, now);
}

function portalPrincipal({ session, rootKey, externalId }: StoredPortalSession, now: Instant): PlainPrincipal {
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
