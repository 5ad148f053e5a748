import type { CallDirectories } from "../../../../engine/src/directory/directories.ts";
import type { PortalSessionRecord } from "../../../../engine/src/directory/records.ts";
import type { Limiter } from "../../../../engine/src/limits/limiter.ts";
import { isPortalToken } from "../../../../engine/src/rules/session-token.ts";
import { findSession, isCurrentSession, type SessionSource } from "../../platform/rpc/find-session.ts";
import { Principal } from "../../platform/rpc/principal.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { Caller, CallerAuthentication } from "../../platform/rpc/server.ts";
import { admitCall } from "../../platform/rpc/workspace-limit.ts";
import { ended, portalPrincipal } from "./session-principal.ts";

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
export class PortalSessions implements CallerAuthentication {
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
  async authenticate({ credentials: { authorization }, address }: Caller): Promise<Principal> {
    if (authorization === undefined || authorization.trim() === "") {
      throw new Problem(
        "authentication_missing",
        "There is no session. Send its token as `Authorization: Bearer <token>`.",
      );
    }
    const token = BEARER.exec(authorization.trim())?.[1];
    if (token === undefined || !isPortalToken(token)) throw ended();
    const record = await this.#find(token, address);
    const principal = this.#principalOf(record, token, address);
    await admitSession(record.stored.session, this.#options.limiter);
    return principal.atPresent(this.#options.clock.now());
  }

  /** @throws {Problem} if there is no such session. */
  async #find(token: string, address: string): Promise<PortalSessionRecord> {
    const record = await findSession(token, address, this.#options.directories.portalSessions, this.#options);
    if (record === null) throw ended();
    return record;
  }

  /** @throws {Problem} if the session has ended. */
  #principalOf(record: PortalSessionRecord, token: string, address: string): Principal {
    const { clock, directories } = this.#options;
    const { session, rootKey } = record.stored;
    const endsAt = Math.min(session.expires_at, rootKey.expires_at ?? Number.POSITIVE_INFINITY);
    return new Principal(portalPrincipal(record.stored, clock.now()), rootKey.workspace_requests_per_minute, {
      isCurrent: (at) => at < endsAt && isCurrentSession(token, record, directories.portalSessions),
      renew: async () => this.#principalOf(await this.#find(token, address), token, address),
    });
  }
}

/** Counts a call against the limit of its session. */
function admitSession(session: { id: string; workspace_id: string }, limiter: Limiter): Promise<void> {
  return admitCall(
    { counter: `p\0${session.id}`, limit: REQUESTS_PER_MINUTE, owner: session.workspace_id },
    "portal-session",
    `This session has reached its limit of ${REQUESTS_PER_MINUTE} requests per minute.`,
    limiter,
  );
}
