import type { Instant } from "../clock/clock.ts";
import { type Directories, namespaceLookupKey } from "../directory/directories.ts";
import type { NamespaceRecord } from "../directory/records.ts";
import type { Store } from "../store/store.ts";
import type { operationProcedures } from "./execute.ts";
import type { FairQueue } from "./fair-queue.ts";
import type { Principal } from "./principal.ts";
import { problemFrom } from "./problems.ts";
import { overQuota, type WorkspaceQuota } from "./workspace-quota.ts";

/** Rate limit namespaces as metered operations see them: known without asking, and made when they are first used. */
export class Namespaces {
  readonly #directories: Directories;
  readonly #store: Store<ReturnType<typeof operationProcedures>>;
  readonly #queue: FairQueue;
  readonly #quota: WorkspaceQuota;
  /** What is being made, by the name in the directory: calls that come meanwhile wait for the same transaction. */
  readonly #making = new Map<string, Promise<void>>();

  constructor(
    directories: Directories,
    store: Store<ReturnType<typeof operationProcedures>>,
    queue: FairQueue,
    quota: WorkspaceQuota,
  ) {
    this.#directories = directories;
    this.#store = store;
    this.#queue = queue;
    this.#quota = quota;
  }

  /**
   * The namespace with this id or name, null when there is none; at once when that is known. Whether what is known may
   * be served was asked when the caller was recognised.
   */
  find(nameOrId: string, workspaceId: string): NamespaceRecord | null | Promise<NamespaceRecord | null> {
    const name = namespaceLookupKey(nameOrId, workspaceId);
    const record = this.#directories.namespaces.get(name);
    return record === undefined ? this.#directories.namespaces.load(name) : record;
  }

  /** Makes those that are not there yet, in one transaction. Whether the principal may is the caller's to ask. */
  async make(names: readonly string[], principal: Principal, operation: string, now: Instant): Promise<void> {
    const wanted = new Map(names.map((name) => [namespaceLookupKey(name, principal.workspaceId), name]));
    // What refuses another caller says nothing about this one, which finds out what is still missing.
    const pending = [...wanted.keys()].flatMap((tag) => this.#making.get(tag)?.catch(() => {}) ?? []);
    const fresh = [...wanted].filter(([tag]) => !this.#making.has(tag));
    if (fresh.length > 0) {
      const made = this.#make(new Map(fresh), principal, operation, now);
      for (const [tag] of fresh) this.#making.set(tag, made);
      pending.push(made);
    }
    await Promise.all(pending);
  }

  async #make(names: ReadonlyMap<string, string>, principal: Principal, operation: string, now: Instant) {
    try {
      if (!this.#quota.hasCapacity(principal.workspaceId)) throw overQuota("ratelimit_namespaces");
      const use = { operation, principal: principal.plain(), names: [...names.values()], now };
      const done = await this.#queue.run(principal.workspaceId, () => this.#store.transact("createNamespaces", use));
      if ("problem" in done) throw problemFrom(done.problem);
      // Also what another node made a moment ago is not absent any more.
      this.#directories.generations.bump([...names.keys()]);
      if (done.change) this.#quota.record(principal.workspaceId, names.size);
      if (done.change) this.#directories.changes.recordOwn(done.change.sequence);
    } finally {
      for (const tag of names.keys()) this.#making.delete(tag);
    }
  }
}
