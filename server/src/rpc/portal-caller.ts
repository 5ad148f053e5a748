import type { PortalPage, PortalTerms } from "../rules/portal-terms.ts";

/** The session of the portal in whose name a call is made. */
export interface PortalCaller {
  readonly sessionId: string;
  readonly apiId: string;
  readonly identityId: string;
  readonly externalId: string;
  readonly terms: PortalTerms;
  readonly page: PortalPage;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}
