import { applyOwnChange, type CallDirectories, namespaceLookupKey } from "../directory/directories.ts";
import type { NamespaceRecord } from "../directory/records.ts";

/** What creates namespaces for a caller: a transaction in the database. */
export interface NamespaceCreation<Caller> {
  names: readonly string[];
  caller: Caller;
  /** The operation that uses the namespaces. */
  operation: string;
}

export interface NamespacesOptions<Caller> {
  directories: CallDirectories;
  /**
   * Creates the namespaces that do not exist. Gives the sequence number of the change, or undefined when all of them
   * existed. Rejects when the caller may not create them.
   */
  create(creation: NamespaceCreation<Caller>): Promise<number | undefined>;
}

/** The rate limit namespaces of metered operations: answered from memory, created at their first use. */
export class Namespaces<Caller extends { readonly workspaceId: string }> {
  readonly #options: NamespacesOptions<Caller>;
  /** Transactions that create namespaces, by lookup key. Concurrent calls wait for the same transaction. */
  readonly #creations = new Map<string, Promise<void>>();

  constructor(options: NamespacesOptions<Caller>) {
    this.#options = options;
  }

  /**
   * The namespace with this id or name, or null. Answers at once when it is cached. Authentication has already checked
   * that cached records are fresh enough.
   */
  find(nameOrId: string, workspaceId: string): NamespaceRecord | null | Promise<NamespaceRecord | null> {
    const { namespaces } = this.#options.directories;
    const lookupKey = namespaceLookupKey(nameOrId, workspaceId);
    const record = namespaces.get(lookupKey);
    return record === undefined ? namespaces.load(lookupKey) : record;
  }

  /** Creates the namespaces that do not exist, in one transaction. The operation checks the permissions first. */
  async create(creation: NamespaceCreation<Caller>): Promise<void> {
    const { names, caller } = creation;
    const wanted = new Map(names.map((name) => [namespaceLookupKey(name, caller.workspaceId), name]));
    // The failure of another caller does not concern this one: it looks again for what is missing.
    const pending = [...wanted.keys()].flatMap((lookupKey) => this.#creations.get(lookupKey)?.catch(() => {}) ?? []);
    const missing = new Map([...wanted].filter(([lookupKey]) => !this.#creations.has(lookupKey)));
    if (missing.size > 0) {
      const created = this.#createMissing(missing, creation);
      for (const lookupKey of missing.keys()) this.#creations.set(lookupKey, created);
      pending.push(created);
    }
    await Promise.all(pending);
  }

  async #createMissing(missing: ReadonlyMap<string, string>, creation: NamespaceCreation<Caller>): Promise<void> {
    const { directories, create } = this.#options;
    try {
      const sequence = await create({ ...creation, names: [...missing.values()] });
      // Another node may have created some of them: the negative cache must drop those too.
      applyOwnChange(directories, { tags: [...missing.keys()], sequence });
    } finally {
      for (const lookupKey of missing.keys()) this.#creations.delete(lookupKey);
    }
  }
}
