import { constantTimeEqual, hmacSha256 } from "../crypto/hash.ts";
import type { SecretSource } from "../crypto/secret.ts";
import { base58, PORTAL_TOKEN_PREFIX } from "./key-string.ts";

const RANDOM_BYTES = 24;

/** 58^11 is more than 64 bits. */
const SIGNATURE_LENGTH = 11;
const SIGNATURE_BYTES = 9;

/** Tokens of both kinds have a form that the previous release accepts, because its nodes look up tokens of this one. */
const DASHBOARD_TOKEN = /^[A-Za-z0-9_-]{43}$/;
const PORTAL_TOKEN = new RegExp(`^${PORTAL_TOKEN_PREFIX}_[0-9A-Za-z]{20,60}$`);

/** Whether a text has the form of the token of a session of the dashboard. */
export function isDashboardToken(text: string): boolean {
  return DASHBOARD_TOKEN.test(text);
}

/** Whether a text has the form of the token of a session of the portal. */
export function isPortalToken(text: string): boolean {
  return PORTAL_TOKEN.test(text);
}

/**
 * A token of a session of the dashboard: 24 random bytes, and a signature of them.
 *
 * A signature is an HMAC with a key that only this database has, in base58. Nobody else can make one, so that a token
 * with a signature is not a guess, and its look-up needs no budget.
 */
export function newDashboardToken(key: string, secrets: SecretSource): string {
  const text = Buffer.from(secrets(RANDOM_BYTES)).toString("base64url");
  return text + signature(key, text);
}

/** A token of a session of the portal: the prefix, 24 random bytes in base58, and a signature of both. */
export function newPortalToken(key: string, secrets: SecretSource): string {
  const text = `${PORTAL_TOKEN_PREFIX}_${base58(secrets(RANDOM_BYTES))}`;
  return text + signature(key, text);
}

/** Whether this key has signed the token. Sessions of the previous release have tokens without a signature. */
export function isSignedToken(key: string, token: string): boolean {
  const text = token.slice(0, -SIGNATURE_LENGTH);
  return constantTimeEqual(signature(key, text), token.slice(-SIGNATURE_LENGTH));
}

function signature(key: string, text: string): string {
  const digits = base58(hmacSha256(key, text).subarray(0, SIGNATURE_BYTES));
  return digits.slice(-SIGNATURE_LENGTH).padStart(SIGNATURE_LENGTH, "1");
}
