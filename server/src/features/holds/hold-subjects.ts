import type { OpenedHold } from "../../../../engine/src/credits/batch.ts";
import { GatheredReads } from "../../../../engine/src/credits/gathered-reads.ts";
import { type HoldSubject, identityOfSubject, type SubjectRow, subjectOfHold } from "./record.ts";

/** The most open holds that are remembered. */
const OWN_MAX = 10_000;
/** Queries at the same time: verifications, which look keys up, use the same few connections. */
const READS_MAX = 1;
/** The most characters of the receipt of a hold that is remembered. */
const RECEIPT_LENGTH_MAX = 500;

/**
 * Finds what is needed to change a hold. That of the open holds that this node made last is in memory: it does not change,
 * except that their balances can become fewer, which the ledger checks. Those of other nodes are read, many in one query.
 */
export class HoldSubjects {
  readonly #own = new Map<string, HoldSubject>();
  readonly #reads: GatheredReads<SubjectRow>;

  /** @param read reads holds of all workspaces by id. */
  constructor(read: (ids: readonly string[]) => Promise<ReadonlyMap<string, SubjectRow>>) {
    this.#reads = new GatheredReads(read, READS_MAX);
  }

  /** Remembers holds that this node has made. */
  add(holds: readonly OpenedHold[]): void {
    for (const { id: holdId, workspaceId, keyId, apiId, subject, limits, balances } of holds) {
      if (limits !== null && limits.length > RECEIPT_LENGTH_MAX) continue;
      const identityId = identityOfSubject(subject);
      const ids = balances.map(({ id }) => id);
      this.#own.set(holdId, { holdId, workspaceId, keyId, apiId, identityId, limits, balances: ids });
      if (this.#own.size <= OWN_MAX) continue;
      const [oldest] = this.#own.keys();
      if (oldest !== undefined) this.#own.delete(oldest);
    }
  }

  /** Forgets a hold that has ended: what lives for long costs the garbage collector more than a read by the few that ask again. */
  remove(holdId: string): void {
    this.#own.delete(holdId);
  }

  /** Undefined: the workspace has no such hold. Whether another one has it changes nothing, also not the time that it takes. */
  find(holdId: string, workspaceId: string): HoldSubject | Promise<HoldSubject | undefined> {
    const own = this.#own.get(holdId);
    return own?.workspaceId === workspaceId ? own : this.#read(holdId, workspaceId);
  }

  async #read(holdId: string, workspaceId: string): Promise<HoldSubject | undefined> {
    const read = await this.#reads.find(holdId);
    // A damaged row fails the calls of its hold only.
    return read?.workspace_id === workspaceId ? subjectOfHold(read) : undefined;
  }
}
