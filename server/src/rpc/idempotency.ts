import { deriveSealingKey, hashSecret } from "../crypto/hash.ts";
import { Problem } from "./problems.ts";

/** A call that carries an Idempotency-Key, by hashes; can be copied to another thread. */
export interface IdempotentCall {
  /** Hash of workspace, operation, caller and Idempotency-Key. */
  scope: string;
  /** Hash of the validated body. */
  fingerprint: string;
  workspaceId: string;
  /** The workspace has as many records as it may have: the call is answered only if it was made before. */
  isOverQuota?: boolean | undefined;
}

/** A call whose outcome may hold a secret. */
export interface SealedCall extends IdempotentCall {
  /** The outcome is sealed under it. */
  sealingKey: Uint8Array;
}

const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;

/**
 * The call as it can be recognised when it is repeated.
 *
 * @throws {Problem} `invalid_input` when the header is not 1 to 255 visible ASCII characters.
 */
export function idempotentCall(
  idempotencyKey: string,
  workspaceId: string,
  operation: string,
  /** The root key's id, or the hash of the key that was presented without one. */
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
 * The call with the key that its outcome is sealed under, derived from the Idempotency-Key and the caller's root key.
 * The database has only a hash of the root key, so with nothing but the database an outcome cannot be opened, however
 * easily the Idempotency-Key is guessed. A repetition comes with the same root key, which is part of the scope.
 */
export function sealedCall(call: IdempotentCall, idempotencyKey: string, authorization: string): SealedCall {
  const rootKey = authorization.slice(authorization.indexOf(" ") + 1).trim();
  return { ...call, sealingKey: deriveSealingKey(`${rootKey}\0${idempotencyKey}`, call.scope) };
}
