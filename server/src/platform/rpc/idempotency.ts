import { deriveSealingKey, hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { Problem } from "./problems.ts";

/** A call with an Idempotency-Key, as hashes. Can be copied to another thread. */
export interface IdempotentCall {
  /** Hash of workspace, operation, caller and Idempotency-Key. */
  scope: string;
  /** Hash of the validated body. */
  fingerprint: string;
  workspaceId: string;
  /** The workspace has used up its quota of records: only a replay is answered. */
  isOverQuota?: boolean | undefined;
}

/** A call whose outcome may hold a secret. */
export interface SealedCall extends IdempotentCall {
  /** Encrypts the outcome. */
  sealingKey: Uint8Array;
}

const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;

/**
 * The hashes that identify a call and its retries.
 *
 * @throws {Problem} `invalid_input` unless the header is 1 to 255 visible ASCII characters.
 */
export function idempotentCall(
  idempotencyKey: string,
  workspaceId: string,
  operation: string,
  /** The root key's id; without a root key, the hash of the key in the input. */
  caller: string,
  input: unknown,
): IdempotentCall {
  if (!VISIBLE_ASCII.test(idempotencyKey)) {
    throw new Problem("invalid_input", "The header Idempotency-Key is not valid.", {
      errors: [
        {
          location: "header",
          message: "Idempotency-Key must be 1 to 255 visible ASCII characters",
          fix: "Send a fresh random text, such as a UUID, with each call, and the same one when you repeat it.",
        },
      ],
    });
  }
  const scope = hashSecret([workspaceId, operation, caller, idempotencyKey].join("\0"));
  const fingerprint = hashSecret(JSON.stringify(input));
  return { scope, fingerprint, workspaceId };
}

/**
 * The call with the encryption key of its outcome, which is derived from the Idempotency-Key and the caller's root key.
 * The database has only a hash of the root key. So a copy of the database does not reveal an outcome, even if the
 * Idempotency-Key is easy to guess. A retry has the same root key, which is part of the scope.
 */
export function sealedCall(call: IdempotentCall, idempotencyKey: string, authorization: string): SealedCall {
  const rootKey = authorization.slice(authorization.indexOf(" ") + 1).trim();
  return { ...call, sealingKey: deriveSealingKey(`${rootKey}\0${idempotencyKey}`, call.scope) };
}
