import type { CallerSession, Principal } from "../../platform/rpc/principal.ts";
import type { PortalPage, PortalTerms } from "./terms.ts";

/** The kind and the audience of sessions of the portal. */
export const PORTAL = "portal";

/** The session of the portal in whose name a call is made. */
export interface PortalCaller extends CallerSession {
  readonly apiId: string;
  readonly identityId: string;
  readonly externalId: string;
  readonly terms: PortalTerms;
  readonly page: PortalPage;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** The session that makes the call; undefined: it is none of the portal. */
export function portalCallerOf({ session }: Principal): PortalCaller | undefined {
  return session?.kind === PORTAL ? (session as PortalCaller) : undefined;
}
