import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import type { CallDirectories } from "../../../../engine/src/directory/directories.ts";
import type { RootKeyRecord } from "../../../../engine/src/directory/records.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import { addressNetwork } from "../../../../engine/src/rules/address.ts";
import type { RootKeyUse } from "../store/access/root-key-usage.ts";
import { Principal, requireUsable } from "./principal.ts";
import { Problem } from "./problems.ts";

const BEARER = "Bearer ";

/** Maximum length of a root key. */
const ROOT_KEY_LENGTH_MAX = 512;

/** The precision of the recorded time of the last use. */
const USE_INTERVAL: Milliseconds = 60_000;

/** The `Authorization` header of a caller. */
export interface Credentials {
  authorization: string | undefined;
  /** The hash of its root key. The authenticator sets it, so that a caller that repeats the header is hashed once. */
  rootKeyHash?: string | undefined;
}

type LookUp = (load: () => Promise<RootKeyRecord | null>) => Promise<RootKeyRecord | null>;

/** Authenticates callers by root key. Caches the principal of each cached record. */
export class Authenticator {
  readonly #directories: CallDirectories;
  readonly #principals = new WeakMap<RootKeyRecord, Principal>();
  #uses = new Map<string, Instant>();

  constructor(directories: CallDirectories) {
    this.#directories = directories;
  }

  /**
   * Returns the principal of the root key in the header of `credentials`, or null without a header. Returns a promise if
   * the root key is not cached or the caches of this node are not current.
   *
   * @param address the address of the caller; look-ups of unknown root keys count against its rate limit.
   * @param now the wall-clock time; `monotonic` is the same moment by the monotonic clock.
   * @throws {Problem} if the header is malformed or the root key may not make calls. The promise rejects with a Problem
   * too; with `LookupsExhausted` if that is exceeded; with `StoreUnavailable` if the database does not answer.
   */
  authenticate(
    credentials: Credentials,
    address: string,
    now: Instant,
    monotonic: Milliseconds,
  ): Principal | null | Promise<Principal> {
    credentials.rootKeyHash ??= rootKeyHashOf(credentials.authorization);
    const hash = credentials.rootKeyHash;
    if (hash === undefined) return null;
    const mayServe = this.#directories.changes.mayServe(now, monotonic);
    if (mayServe === true) {
      const record = this.#directories.rootKeys.get(hash);
      if (record !== undefined) return this.#principalOf(hash, record, now);
      return this.#lookUpFor(address, hash, now);
    }
    return this.#authenticateLate(mayServe, hash, address, now);
  }

  /** Authenticates on a node whose caches are not current: see the states of `ChangesFollower`. */
  async #authenticateLate(
    mayServe: false | Promise<boolean>,
    hash: string,
    address: string,
    now: Instant,
  ): Promise<Principal> {
    if (!(await mayServe)) {
      throw new StoreUnavailable("The database has been unreachable for longer than cached root keys may be used");
    }
    const record = this.#directories.rootKeys.get(hash);
    return record === undefined ? this.#lookUpFor(address, hash, now) : this.#principalOf(hash, record, now);
  }

  /**
   * The principal of a root key whose string somebody else has read: a call of an edge.
   *
   * @param lookUp runs a look-up of a root key that nobody has asked for before, and counts it if there is none.
   * @throws {Problem} or rejects with one if the root key may not make calls, and with what `lookUp` rejects with.
   */
  authenticateHash(hash: string, now: Instant, lookUp: LookUp): Principal | Promise<Principal> {
    const record = this.#directories.rootKeys.get(hash);
    return record === undefined ? this.#lookUp(hash, now, lookUp) : this.#principalOf(hash, record, now);
  }

  #lookUpFor(address: string, hash: string, now: Instant): Promise<Principal> {
    return this.#lookUp(hash, now, (load) => this.#directories.rootKeyLookups.spend(addressNetwork(address), load));
  }

  async #lookUp(hash: string, now: Instant, lookUp: LookUp): Promise<Principal> {
    const { rootKeys } = this.#directories;
    const load = () => rootKeys.load(hash);
    // The root key existed when its outdated record was read. So the caller does not guess, and the look-up is free.
    return this.#principalOf(hash, rootKeys.has(hash) ? await load() : await lookUp(load), now);
  }

  #principalOf(hash: string, record: RootKeyRecord | null, now: Instant): Principal {
    requireUsable(record, now);
    let principal = this.#principals.get(record);
    if (!principal) {
      principal = new Principal(record, record.requestsPerMinute, {
        rootKeyHash: hash,
        isCurrent: (at) => this.#directories.rootKeys.get(hash) === record && !isExpired(record, at),
        // The look-up is free, because the root key has authenticated before.
        renew: (at) => this.authenticateHash(hash, at, (load) => load()),
      });
      this.#principals.set(record, principal);
    }
    if (now - principal.usedAt >= USE_INTERVAL) {
      principal.usedAt = now;
      this.#uses.set(principal.rootKeyId, now);
    }
    return principal;
  }

  /** Records a use of a root key elsewhere: by a session that stands for it, in another thread, at an edge. */
  recordUse(rootKeyId: string, at: Instant): void {
    const known = this.#uses.get(rootKeyId);
    if (known === undefined || known < at) this.#uses.set(rootKeyId, at);
  }

  /** The root keys that were used since the last call of this method. */
  takeUses(): RootKeyUse[] {
    const uses = [...this.#uses].map(([rootKeyId, at]) => ({ rootKeyId, at }));
    this.#uses = new Map();
    return uses;
  }
}

/**
 * The hash of the root key in a header; undefined without a header.
 *
 * @throws {Problem} if the header is malformed.
 */
function rootKeyHashOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined || authorization.trim() === "") return undefined;
  // Schemes are case-insensitive (RFC 9110, section 11.1); the usual spelling is compared without copying it.
  if (!authorization.startsWith(BEARER) && authorization.slice(0, BEARER.length).toLowerCase() !== "bearer ") {
    throw new Problem("authentication_malformed");
  }
  const rootKey = authorization.slice(BEARER.length).trim();
  if (rootKey === "") throw new Problem("authentication_malformed");
  if (rootKey.length > ROOT_KEY_LENGTH_MAX) throw new Problem("authentication_failed");
  return hashSecret(rootKey);
}

function isExpired({ expiresAt }: RootKeyRecord, now: Instant): boolean {
  return expiresAt !== null && now >= expiresAt;
}
