import type { Clock } from "../clock/clock.ts";
import type { CallDirectories } from "../directory/directories.ts";
import type { KeyLimit, KeyRecord } from "../directory/records.ts";
import type { Limiter } from "../limits/limiter.ts";
import { isAllowed } from "../rules/address.ts";
import { codeOfState } from "./checks.ts";
import type { CountedLimit } from "./explanation.ts";
import { KeyLookup } from "./key-lookup.ts";
import { KeyWatch } from "./key-watch.ts";
import { chargeOf, readingOf, usedIn } from "./limits.ts";
import type { VerificationRequest } from "./request.ts";

/** A key, and whether it and its caller are still as they were when it was looked up. */
interface FoundKey {
  readonly key: KeyRecord;
  isCurrent(): boolean;
}

/** What holders of keys read of their own key. */
export class OwnKeys {
  readonly #lookup: KeyLookup;
  readonly #watch: KeyWatch;
  readonly #limiter: Pick<Limiter, "peek">;

  constructor(clock: Pick<Clock, "now">, directories: CallDirectories, limiter: Pick<Limiter, "peek">) {
    this.#lookup = new KeyLookup(directories);
    this.#watch = new KeyWatch(clock, directories);
    this.#limiter = limiter;
  }

  /**
   * The key of a holder who presents its string, looked up like a verification. Null if there is none, if its API lets no
   * holder read, or if the caller's address or root key may not.
   */
  async find(request: VerificationRequest): Promise<FoundKey | null> {
    const generation = this.#watch.generation();
    const key = await this.#find(request, "read_key");
    if (!key?.hasOwnAccess) return null;
    return { key, isCurrent: () => this.#watch.isCurrentSince(generation, key, request) };
  }

  /**
   * The key of a holder who wants to derive keys from it, looked up in the same way. Null as well if the key is not valid, or if
   * its API lets no holder derive.
   */
  async findParent(request: VerificationRequest): Promise<KeyRecord | null> {
    const found = await this.#find(request, "create_key");
    if (!found?.hasOwnDerivation) return null;
    return codeOfState(found, request, undefined) === undefined ? found : null;
  }

  async #find(request: VerificationRequest, action: string): Promise<KeyRecord | null> {
    await this.#lookup.requireCurrent(request);
    const cached = this.#lookup.findCached(request);
    const found = cached === undefined ? await this.#lookup.find(request) : cached;
    if (found === null || "kind" in found || found.isDeleted || !found.workspaceEnabled) return null;
    const { principal, address } = request;
    if (principal && !principal.may(`apis.${found.apiId}.${action}`)) return null;
    return found.allowedIps === null || isAllowed(found.allowedIps, address) ? found : null;
  }

  /** The counters of the limits of a key, without a charge and without those in shadow mode. */
  async readLimits(key: KeyRecord): Promise<(CountedLimit & { limit: KeyLimit })[]> {
    const inForce = key.limits.filter(({ shadow }) => !shadow);
    if (inForce.length === 0) return [];
    const { limits } = await this.#limiter.peek(inForce.map((limit) => readingOf(chargeOf(limit, key))));
    return inForce.map((limit, i) => ({ limit, used: usedIn(limits[i]!), reset: limits[i]!.reset }));
  }
}
