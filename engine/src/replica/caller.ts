import type { Instant } from "../clock/clock.ts";
import { then } from "../clock/then.ts";
import { hashSecret } from "../crypto/hash.ts";
import type { CallDirectories } from "../directory/directories.ts";
import type { RootKeyRecord } from "../directory/records.ts";
import { compileGrants, type Grants, meets } from "../rules/grants.ts";
import type { Caller } from "../verification/request.ts";

/** The only caller of a replica inside a program: the holder of its root key. */
export class OwnCaller {
  readonly #rootKeys: CallDirectories["rootKeys"];
  readonly #hash: string;
  #known: { readonly record: RootKeyRecord; readonly caller: Caller } | undefined;

  constructor({ rootKeys }: Pick<CallDirectories, "rootKeys">, rootKey: string) {
    this.#rootKeys = rootKeys;
    this.#hash = hashSecret(rootKey);
  }

  /**
   * The caller; null if home must judge: because the root key may make no calls, or because each call of its workspace counts
   * against a limit.
   */
  find(now: Instant): Caller | null | Promise<Caller | null> {
    const cached = this.#rootKeys.get(this.#hash);
    if (cached !== undefined && cached !== null && cached === this.#known?.record && !isExpired(cached, now)) {
      return this.#known.caller;
    }
    return then(cached === undefined ? this.#rootKeys.load(this.#hash) : cached, (record) =>
      this.#callerOf(record, now),
    );
  }

  #callerOf(record: RootKeyRecord | null, now: Instant): Caller | null {
    if (record === null || !record.enabled || !record.workspaceEnabled || isExpired(record, now)) return null;
    if (record.requestsPerMinute !== null) return null;
    const grants: Grants = compileGrants(record.grants);
    // All keys of an API require the same.
    let [latest, isMet] = ["", false];
    const caller: Caller = {
      may: (requirement) => {
        if (requirement !== latest) [latest, isMet] = [requirement, meets(grants, requirement)];
        return isMet;
      },
      isCurrent: (at) => this.#rootKeys.get(this.#hash) === record && !isExpired(record, at),
      renew: () => caller,
    };
    this.#known = { record, caller };
    return caller;
  }
}

function isExpired({ expiresAt }: RootKeyRecord, now: Instant): boolean {
  return expiresAt !== null && now >= expiresAt;
}
