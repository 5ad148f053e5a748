import type { Instant } from "../clock/clock.ts";
import { hashSecret } from "../crypto/hash.ts";
import { type Known, keyName } from "../directory/known.ts";
import type { KeyRecord, WorkspaceRecord } from "../directory/records.ts";
import { isListed } from "../rules/address.ts";
import { hasValidChecksum } from "../rules/key-string.ts";
import { type PermissionQueryError, satisfies } from "../rules/permission-query.ts";
import { StoreUnavailable } from "../store/store.ts";
import { PermissionQueries } from "./queries.ts";

export interface VerificationRequest {
  /** The key string that somebody presented. */
  key: string;
  /** Only a key of this API will do. */
  apiId?: string | undefined;
  /** A permission query that the key must satisfy. */
  permissions?: string | undefined;
  /** Where the key is looked for. */
  workspaceId: string;
  /** Who asks; null without a root key. */
  principal: { may(requirement: string): boolean } | null;
  /** The address that the API's allow-list is compared with. */
  address: string;
  now: Instant;
}

export type VerificationCode =
  | "VALID"
  | "NOT_FOUND"
  | "FORBIDDEN"
  | "INSUFFICIENT_PERMISSIONS"
  | "DISABLED"
  | "EXPIRED";

/** The JSON text of an answer, or a permission query that cannot be read. */
export type VerificationAnswer = string | PermissionQueryError;

const NOT_FOUND = '{"valid":false,"code":"NOT_FOUND"}';

/**
 * Decides whether a key may pass: contract B3.3 with A2, from memory wherever memory has the key.
 */
export class Verification {
  readonly #known: Known;
  readonly #queries = new PermissionQueries();
  /** Answers by code, for the metrics. */
  readonly counts: Record<VerificationCode, number> = {
    VALID: 0,
    NOT_FOUND: 0,
    FORBIDDEN: 0,
    INSUFFICIENT_PERMISSIONS: 0,
    DISABLED: 0,
    EXPIRED: 0,
  };

  constructor(known: Known) {
    this.#known = known;
  }

  /** Answers at once when everything is known, else after a look-up. Rejects when that fails. */
  verify(request: VerificationRequest): VerificationAnswer | Promise<VerificationAnswer> {
    const served = this.#known.changes.mayServe(request.now);
    if (served !== true) return this.#verifyWhenServed(served, request);
    const name = keyName(hashSecret(request.key), request.workspaceId);
    const record = this.#known.keys.get(name);
    if (record === undefined) return this.#look(name, request);
    return record === null ? this.#notFound() : this.#decide(record, request);
  }

  async #verifyWhenServed(served: false | Promise<boolean>, request: VerificationRequest): Promise<VerificationAnswer> {
    if (!(await served)) {
      throw new StoreUnavailable("The database has been out of reach for longer than what is known may be served");
    }
    const name = keyName(hashSecret(request.key), request.workspaceId);
    const record = this.#known.keys.get(name);
    if (record === undefined) return this.#look(name, request);
    return record === null ? this.#notFound() : this.#decide(record, request);
  }

  async #look(name: string, request: VerificationRequest): Promise<VerificationAnswer> {
    if (!hasValidChecksum(request.key)) {
      // A mistyped key is none of ours, unless keys that were made elsewhere live here.
      const workspace = await this.#workspace(request.workspaceId);
      if (!workspace?.hasImportedKeys) return this.#notFound();
    }
    const record = await this.#known.keys.fill(name);
    return record === null ? this.#notFound() : this.#decide(record, request);
  }

  #workspace(id: string): WorkspaceRecord | null | Promise<WorkspaceRecord | null> {
    const workspace = this.#known.workspaces.get(id);
    return workspace === undefined ? this.#known.workspaces.fill(id) : workspace;
  }

  #notFound(): string {
    this.counts.NOT_FOUND++;
    return NOT_FOUND;
  }

  #decide(key: KeyRecord, request: VerificationRequest): VerificationAnswer {
    if (request.apiId !== undefined && request.apiId !== key.apiId) return this.#notFound();
    if (request.principal && !request.principal.may(key.verifyRequirement)) return this.#notFound();

    // A query that cannot be read is the caller's mistake whatever the key's state is.
    const query = request.permissions === undefined ? undefined : this.#queries.parse(request.permissions);
    if (query && query.kind !== "query") return query;

    let code: VerificationCode = "VALID";
    if (!key.workspaceEnabled) code = "FORBIDDEN";
    else if (!key.enabled) code = "DISABLED";
    else if (key.expiresAt !== null && request.now >= key.expiresAt) code = "EXPIRED";
    else if (key.allowedIps && !isListed(key.allowedIps, request.address)) code = "FORBIDDEN";
    else if (query && !satisfies(query, key.permissions)) code = "INSUFFICIENT_PERMISSIONS";

    this.counts[code]++;
    const members = request.principal ? key.members : key.anonymousMembers;
    return `{"valid":${code === "VALID"},"code":"${code}",${members}}`;
  }
}
