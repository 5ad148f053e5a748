import type { Instant, Milliseconds } from "../clock/clock.ts";
import { hashSecret } from "../crypto/hash.ts";
import type { Directories } from "../directory/directories.ts";
import type { RootKeyRecord } from "../directory/records.ts";
import { addressNetwork } from "../rules/address.ts";
import { StoreUnavailable } from "../store/store.ts";
import { Principal, requireUsable } from "./principal.ts";
import { Problem } from "./problems.ts";

const BEARER = "Bearer ";

/** Root keys are at most this long. */
const TOKEN_LENGTH_MAX = 512;

/** Authenticates callers by root key. Caches the principal of each cached record. */
export class Authenticator {
  readonly #directories: Directories;
  readonly #principals = new WeakMap<RootKeyRecord, Principal>();

  constructor(directories: Directories) {
    this.#directories = directories;
  }

  /**
   * The principal, without a promise if the root key is cached; null without a header.
   *
   * @param address of the caller: it pays for look-ups of unknown root keys.
   * @param now the time by the wall clock, and `monotonic` by the other.
   * @throws {Problem} or rejects with one if the header is malformed or the root key may not make calls.
   */
  authenticate(
    authorization: string | undefined,
    address: string,
    now: Instant,
    monotonic: Milliseconds,
  ): Principal | null | Promise<Principal> {
    if (authorization === undefined || authorization.trim() === "") return null;
    // Schemes are case-insensitive (RFC 9110, section 11.1); the usual spelling is compared without copying it.
    if (!authorization.startsWith(BEARER) && authorization.slice(0, BEARER.length).toLowerCase() !== "bearer ") {
      throw new Problem("authentication_malformed");
    }
    const token = authorization.slice(BEARER.length).trim();
    if (token === "") throw new Problem("authentication_malformed");
    if (token.length > TOKEN_LENGTH_MAX) throw new Problem("authentication_failed");
    const hash = hashSecret(token);
    const served = this.#directories.changes.mayServe(now, monotonic);
    if (served === true) {
      const record = this.#directories.rootKeys.get(hash);
      if (record !== undefined) return this.#principalOf(hash, record, now);
      return this.#lookUp(hash, address, now);
    }
    return this.#authenticateWhenServed(served, hash, address, now);
  }

  async #authenticateWhenServed(
    served: false | Promise<boolean>,
    hash: string,
    address: string,
    now: Instant,
  ): Promise<Principal> {
    if (!(await served)) throw new StoreUnavailable("Cached root keys are too old to be used");
    const record = this.#directories.rootKeys.get(hash);
    return record === undefined ? this.#lookUp(hash, address, now) : this.#principalOf(hash, record, now);
  }

  async #lookUp(hash: string, address: string, now: Instant): Promise<Principal> {
    const { rootKeys, rootKeyBudget } = this.#directories;
    // An outdated record is no guess, so the look-up needs no budget.
    const record = rootKeys.isOutdated(hash)
      ? await rootKeys.load(hash)
      : await rootKeyBudget.spend(addressNetwork(address), () => rootKeys.load(hash));
    return this.#principalOf(hash, record, now);
  }

  /** A root key that authenticated before is no guess, so the look-up needs no budget. */
  async #renew(hash: string, now: Instant): Promise<Principal> {
    const record = this.#directories.rootKeys.get(hash);
    return this.#principalOf(hash, record === undefined ? await this.#directories.rootKeys.load(hash) : record, now);
  }

  #principalOf(hash: string, record: RootKeyRecord | null, now: Instant): Principal {
    requireUsable(record, now);
    let principal = this.#principals.get(record);
    if (!principal) {
      principal = new Principal(record, record.requestsPerMinute, {
        isCurrent: (at) => this.#directories.rootKeys.get(hash) === record && !isExpired(record, at),
        renew: (at) => this.#renew(hash, at),
      });
      this.#principals.set(record, principal);
    }
    return principal;
  }
}

function isExpired({ expiresAt }: RootKeyRecord, now: Instant): boolean {
  return expiresAt !== null && now >= expiresAt;
}
