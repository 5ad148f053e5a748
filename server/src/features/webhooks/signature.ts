import { createHmac } from "node:crypto";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";

const PREFIX = "whsec_";
const BYTES = 32;

/** Creates a secret for `signWebhook`: `whsec_` and 32 random bytes in Base64 (Standard Webhooks 1.0.0). */
export function newWebhookSecret(secrets: SecretSource): string {
  return PREFIX + Buffer.from(secrets(BYTES)).toString("base64");
}

/** What a signature is about: the headers and the body of one request. */
export interface SignedMessage {
  id: string;
  /** Unix time in seconds. */
  timestamp: number;
  body: string;
}

/** The symmetric signature of a message by Standard Webhooks 1.0.0: `v1,` and an HMAC-SHA-256 in Base64. */
export function signWebhook(secret: string, { id, timestamp, body }: SignedMessage): string {
  const key = Buffer.from(secret.slice(PREFIX.length), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
}
