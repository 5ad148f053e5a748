import type { CallDirectories } from "../../../../engine/src/directory/directories.ts";
import type { Limiter } from "../../../../engine/src/limits/limiter.ts";
import { isPortalToken } from "../../../../engine/src/rules/session-token.ts";
import { findSession, type SessionSource } from "../../platform/rpc/find-session.ts";
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
    "portal-session",
    `This session has reached its limit of ${REQUESTS_PER_MINUTE} requests per minute.`,
    limiter,
  );
}
