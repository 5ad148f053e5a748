import type { Instant } from "../clock/clock.ts";
import { hashSecret } from "../crypto/hash.ts";
import type { Directories } from "../directory/directories.ts";
import type { RootKeyRecord } from "../directory/records.ts";
import { addressNetwork } from "../rules/address.ts";
import { StoreUnavailable } from "../store/store.ts";
import { Principal, requireUsable } from "./principal.ts";
import { Problem } from "./problems.ts";

const BEARER = "Bearer ";

/** Root keys are at most this long; what is longer is nobody's. */
const TOKEN_LENGTH_MAX = 512;

/**
 * Who is calling. Principals are kept with the record that they were made from.
 */
export class Authenticator {
  readonly #directories: Directories;
  readonly #principals = new WeakMap<RootKeyRecord, Principal>();

  constructor(directories: Directories) {
    this.#directories = directories;
  }

  /**
   * The principal, at once when the root key is known; null when no header was sent.
   *
   * @param address of the caller: look-ups of root keys that nobody has are budgeted by it.
   * @throws {Problem} or rejects with one when the header is malformed or names nobody who may call.
   */
  authenticate(
    authorization: string | undefined,
    address: string,
    now: Instant,
  ): Principal | null | Promise<Principal> {
    if (authorization === undefined || authorization.trim() === "") return null;
    // Schemes are case-insensitive (RFC 9110, section 11.1); the usual spelling is compared without a copy.
    if (!authorization.startsWith(BEARER) && authorization.slice(0, BEARER.length).toLowerCase() !== "bearer ") {
      throw new Problem("authentication_malformed");
    }
    const token = authorization.slice(BEARER.length).trim();
    if (token === "") throw new Problem("authentication_malformed");
    if (token.length > TOKEN_LENGTH_MAX) throw new Problem("authentication_failed");
    const hash = hashSecret(token);
    const served = this.#directories.changes.mayServe(now);
    if (served === true) {
      const record = this.#directories.rootKeys.get(hash);
      if (record !== undefined) return this.#admit(hash, record, now);
      return this.#look(hash, address, now);
    }
    return this.#authenticateWhenServed(served, hash, address, now);
  }

  async #authenticateWhenServed(
    served: false | Promise<boolean>,
    hash: string,
    address: string,
    now: Instant,
  ): Promise<Principal> {
    if (!(await served)) throw new StoreUnavailable("What is known of root keys is too old to be served");
    const record = this.#directories.rootKeys.get(hash);
    return record === undefined ? this.#look(hash, address, now) : this.#admit(hash, record, now);
  }

  async #look(hash: string, address: string, now: Instant): Promise<Principal> {
    const { rootKeys, rootKeyBudget } = this.#directories;
    // One that was there when it was last read is no guess.
    const record = rootKeys.isOutdated(hash)
      ? await rootKeys.load(hash)
      : await rootKeyBudget.spend(addressNetwork(address), () => rootKeys.load(hash));
    return this.#admit(hash, record, now);
  }

  /** A root key that was admitted before is no guess: it is not counted among those. */
  async #renew(hash: string, now: Instant): Promise<Principal> {
    const record = this.#directories.rootKeys.get(hash);
    return this.#admit(hash, record === undefined ? await this.#directories.rootKeys.load(hash) : record, now);
  }

  #admit(hash: string, record: RootKeyRecord | null, now: Instant): Principal {
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
