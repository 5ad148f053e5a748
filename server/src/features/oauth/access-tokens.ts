import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify, SignJWT } from "jose";
import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { KeyRecord } from "../../../../engine/src/directory/records.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import type { SigningKeys } from "./signing-keys.ts";

const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** RFC 9068, section 2.1. */
const TYPE = "at+jwt";

/** What an access token says: RFC 9068, section 2.2. */
export interface AccessTokenClaims extends JWTPayload {
  iss: string;
  aud: string | string[];
  /** The id of the key, as `client_id` is: there is no other owner of the resource. */
  sub: string;
  client_id: string;
  iat: number;
  exp: number;
  jti: string;
  scope?: string;
  latchkey: { apiId: string; externalId?: string };
}

export interface IssuedToken {
  readonly token: string;
  /** In seconds. */
  readonly expiresIn: number;
}

export interface AccessTokensOptions {
  keys: Pick<SigningKeys, "current" | "published">;
  random: Random;
  life: Milliseconds;
  issuerOf(workspaceId: string): string;
}

/** Issues access tokens, and reads those that it issued. */
export class AccessTokens {
  readonly #options: AccessTokensOptions;

  constructor(options: AccessTokensOptions) {
    this.#options = options;
  }

  /** A token for a key that is valid now. It does not outlive the key. */
  async issue(
    { workspaceId, keyId, apiId, identity, expiresAt }: KeyRecord,
    { audience, scope }: { audience: readonly string[]; scope: string | undefined },
    now: Instant,
  ): Promise<IssuedToken> {
    const { keys, random, life, issuerOf } = this.#options;
    const { id, algorithm, privateKey } = await keys.current(workspaceId, now);
    const iat = Math.floor(now / 1_000);
    const exp = Math.floor(Math.min(now + life, expiresAt ?? Number.POSITIVE_INFINITY) / 1_000);
    const claims: AccessTokenClaims = {
      iss: issuerOf(workspaceId),
      aud: audience.length > 1 ? [...audience] : audience.join(""),
      sub: keyId,
      client_id: keyId,
      iat,
      exp,
      jti: newId(random, "tok"),
      ...(scope !== undefined && { scope }),
      latchkey: { apiId, ...(identity && { externalId: identity.externalId }) },
    };
    const header = { alg: algorithm, typ: TYPE, kid: id };
    return { token: await new SignJWT(claims).setProtectedHeader(header).sign(privateKey), expiresIn: exp - iat };
  }

  /**
   * What a token of this workspace says; null if it has expired or was forged, and undefined if it names no key of the
   * workspace. The key decides which algorithm is accepted, never the token.
   */
  async read(workspaceId: string, token: string, now: Instant): Promise<AccessTokenClaims | null | undefined> {
    if (!JWT.test(token)) return undefined;
    const kid = keyIdOf(token);
    if (kid === undefined) return undefined;
    const { keys, issuerOf } = this.#options;
    const key = (await keys.published(workspaceId, now)).find(({ id }) => id === kid);
    if (key === undefined) return undefined;
    try {
      const { payload } = await jwtVerify<AccessTokenClaims>(token, key.publicKey, {
        algorithms: [key.algorithm],
        typ: TYPE,
        issuer: issuerOf(workspaceId),
        currentDate: new Date(now),
        requiredClaims: ["exp", "iat", "sub", "client_id", "aud", "jti"],
      });
      return payload;
    } catch (error) {
      if (error instanceof errors.JOSEError) return null;
      throw error;
    }
  }
}

/** The key that a token names; undefined if it is no JWT. */
function keyIdOf(token: string): string | undefined {
  try {
    const { kid } = decodeProtectedHeader(token);
    return typeof kid === "string" ? kid : undefined;
  } catch {
    return undefined;
  }
}
