import { isDeepStrictEqual } from "node:util";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import type { CallDirectories } from "../../../../engine/src/directory/directories.ts";
import type { RecordCache } from "../../../../engine/src/directory/record-cache.ts";
import type { DirectoryRootKey } from "../../../../engine/src/directory/stored.ts";
import { addressNetwork } from "../../../../engine/src/rules/address.ts";
import { isSignedToken } from "../../../../engine/src/rules/session-token.ts";

/**
 * For how long a session is not read again. A change outdates it earlier; a node of the previous release, which does not
 * publish the end of a session, ends it within this time too.
 */
const AGE_MAX: Milliseconds = 1_000;

export interface SessionSource {
  clock: Clock;
  directories: Pick<CallDirectories, "changes" | "sessionLookups">;
  /** The key that signs tokens. */
  tokenKey: string;
}

/** What is cached of a session. */
interface ReadSession {
  /** By the monotonic clock. */
  readonly readAt: Milliseconds;
  readonly stored: { readonly rootKey: DirectoryRootKey };
}

/**
 * The session of a token, from the cache if it was read within the last second; null if there is none.
 *
 * Only a token that this service has not signed counts against the rate limit: an invented one, or one of a previous
 * release. So look-ups of existing sessions, and of those that have ended, do not depend on what others send.
 *
 * @throws {LookupsExhausted}
 */
export async function findSession<R extends ReadSession>(
  token: string,
  address: string,
  sessions: RecordCache<R>,
  { clock, directories, tokenKey }: SessionSource,
): Promise<R | null> {
  const hash = hashSecret(token);
  const monotonic = clock.monotonic();
  const record = sessions.get(hash);
  if (record === null) return null;
  if (record !== undefined) {
    const isCurrent = directories.changes.mayServe(clock.now(), monotonic) === true;
    return isCurrent && monotonic - record.readAt < AGE_MAX ? record : sessions.load(hash);
  }
  if (sessions.has(hash) || isSignedToken(tokenKey, token)) return sessions.load(hash);
  return directories.sessionLookups.spend(addressNetwork(address), () => sessions.load(hash));
}

/** Whether the session of a call that has waited is still cached, and its root key is as it was in the record. */
export function isCurrentSession<R extends ReadSession>(token: string, record: R, sessions: RecordCache<R>): boolean {
  const cached = sessions.peek(hashSecret(token));
  // Sessions are read again each second.
  return cached === record || (cached !== undefined && isDeepStrictEqual(cached.stored.rootKey, record.stored.rootKey));
}
