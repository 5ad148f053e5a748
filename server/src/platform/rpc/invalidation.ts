import { importTag, keyMigrationLookupKey } from "../../../../engine/src/directory/directories.ts";
import { portalSessionsTag } from "../../../../engine/src/directory/records.ts";

/**
 * What a mutation invalidates: each verb adds the tag under which the directories cache what changed. A handler that
 * writes calls at least one verb, or `nothing` with the reason; `runMutation` checks this.
 */
export class Invalidation {
  readonly #workspaceId: string;
  readonly #tags: string[] = [];
  #isDecided = false;
  #isOfOthers = false;

  constructor(workspaceId: string) {
    this.#workspaceId = workspaceId;
  }

  /** The tags, in the order in which they were added. */
  get tags(): readonly string[] {
    return this.#tags;
  }

  /** Whose records the tags concern; null: also those of another workspace than that of the call. */
  get workspaceId(): string | null {
    return this.#isOfOthers ? null : this.#workspaceId;
  }

  /** Whether the handler said what it invalidates, even if it is nothing. */
  get isDecided(): boolean {
    return this.#isDecided;
  }

  /** A key that changed or was deleted. */
  key(keyId: string): void {
    this.#add(keyId);
  }

  /** A new key, by the hash of its string: the negative cache may hold it. */
  keyHash(hash: string): void {
    this.#add(hash);
  }

  /** Every key that shares the balance of a pool. */
  pool(poolId: string): void {
    this.#add(poolId);
  }

  /** A root key that changed or was deleted. */
  rootKey(rootKeyId: string): void {
    this.#add(rootKeyId);
  }

  /** A new root key, by the hash of its string: the negative cache may hold it. */
  rootKeyHash(hash: string): void {
    this.#add(hash);
  }

  /** A session that has ended. */
  session(sessionId: string): void {
    this.#add(sessionId);
  }

  /** Every session of the portal in an API, or of an identity. */
  portalSessionsOf(id: string): void {
    this.#add(portalSessionsTag(id));
  }

  /** Every key of an API. */
  api(apiId: string): void {
    this.#add(apiId);
  }

  /** Every key of an identity. */
  identity(identityId: string): void {
    this.#add(identityId);
  }

  /** Every key that spends from a budget. */
  budget(budgetId: string): void {
    this.#add(budgetId);
  }

  /** A plan. Keys do not have its tag, so that they stay cached. */
  plan(planId: string): void {
    this.#add(planId);
  }

  /** A workspace with all its keys, root keys and namespaces. */
  workspace(workspaceId: string): void {
    if (workspaceId !== this.#workspaceId) this.#isOfOthers = true;
    this.#add(workspaceId);
  }

  /** A rate limit namespace with its overrides. */
  namespace(namespaceId: string): void {
    this.#add(namespaceId);
  }

  /** Every missing key of the call's workspace: imported keys may take its place. */
  imports(): void {
    this.#add(importTag(this.#workspaceId));
  }

  /** A new migration of the call's workspace, by its name: the negative cache may hold it. */
  migration(name: string): void {
    this.#add(keyMigrationLookupKey(name, this.#workspaceId));
  }

  /** No cache holds what the handler wrote. The reason is for the reader of the handler. */
  nothing(_reason: string): void {
    this.#isDecided = true;
  }

  #add(tag: string): void {
    this.#isDecided = true;
    this.#tags.push(tag);
  }
}
