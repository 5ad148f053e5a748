import { hashSecret } from "../crypto/hash.ts";
import { keyLocation } from "../directory/directories.ts";
import type { WorkspaceRecord } from "../directory/records.ts";
import { isOwnSecret } from "../rules/key-string.ts";
import { type KeyLookup, sourceOf } from "./key-lookup.ts";
import type { VerificationRequest } from "./request.ts";

/** The question about a key: at most one for each API. */
export interface UpstreamQuestion {
  /** The key string. */
  key: string;
  /** Identifies the key and its workspace; contains no secret. */
  location: string;
  workspaceId: string;
  apiIds: readonly string[];
  /** Whose look-up it is: see `LookupRateLimiter`. */
  source: string;
}

/** Knows which upstream verifiers there are, and asks them. */
export interface UpstreamVerifiers {
  /** Whether the key exists now. At once if every verifier has refused it already. */
  ask(question: UpstreamQuestion): boolean | Promise<boolean>;
}

/** Asks the upstream verifiers of a workspace about keys that do not exist here. */
export class UnknownKeys {
  readonly #lookup: Pick<KeyLookup, "workspace">;
  readonly #upstreams: UpstreamVerifiers;

  constructor(lookup: Pick<KeyLookup, "workspace">, upstreams: UpstreamVerifiers) {
    this.#lookup = lookup;
    this.#upstreams = upstreams;
  }

  /** Whether one of them knows the key, which then exists here too. At once if none must be asked. */
  ask(request: VerificationRequest): boolean | Promise<boolean> {
    const workspace = this.#lookup.workspace(request.workspaceId);
    return workspace instanceof Promise
      ? workspace.then((settled) => this.#ask(settled, request))
      : this.#ask(workspace, request);
  }

  #ask(workspace: WorkspaceRecord | null, request: VerificationRequest): boolean | Promise<boolean> {
    if (!workspace || workspace.upstreamApis.length === 0) return false;
    const { key, workspaceId, apiId, keyspaces, principal, migrationId, isKnownUpstream } = request;
    if (!workspace.enabled || migrationId !== undefined || isKnownUpstream || isOwnSecret(key)) return false;
    const apiIds = workspace.upstreamApis.filter(
      (id) =>
        (apiId === undefined || apiId === id) &&
        (keyspaces === undefined || keyspaces.includes(id)) &&
        (principal === null || principal.may(`apis.${id}.verify_key`)),
    );
    const location = keyLocation(hashSecret(key), workspaceId);
    return this.#upstreams.ask({ key, location, workspaceId, apiIds, source: sourceOf(request) });
  }
}
