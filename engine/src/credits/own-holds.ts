import { TurnoverMap } from "../collections/turnover-map.ts";
import type { CurrentHolds, OpenedHold, StoredHold } from "./batch.ts";

/** The most open holds that are remembered. */
const OWN_MAX = 10_000;

/** What a batch did to holds. */
interface HoldsOfBatch {
  readonly opened: readonly OpenedHold[];
  readonly changed: Iterable<StoredHold>;
}

/**
 * The open holds that this ledger made last, as they are stored, where the database says whether anything else has changed
 * holds: a settlement of them reads nothing.
 */
export class OwnHolds {
  readonly #open = new TurnoverMap<string, StoredHold>();
  /** The version of all holds in which they are so. Undefined: none is remembered. */
  #version: string | undefined;

  /** Those of these holds that are remembered. To be called in a batch, whose transaction nothing else overtakes. */
  find(changes: readonly { readonly holdId: string }[], current: CurrentHolds | undefined): StoredHold[] {
    if (current?.version !== this.#version) this.forget();
    this.#version = current?.version;
    if (this.#open.size === 0) return [];
    return changes.flatMap(({ holdId }) => this.#open.get(holdId) ?? []);
  }

  /** After the commit of a batch. The version of all holds was `from` when it began, and is `version` with what it wrote. */
  update(batch: HoldsOfBatch | undefined, from: string | undefined, version: string | undefined): void {
    // Another batch has begun before this answer arrived.
    if (from === undefined || version === undefined || this.#version !== from) {
      this.forget();
      return;
    }
    this.#version = version;
    if (!batch) return;
    for (const hold of batch.changed) {
      if (hold.state === "open") this.#open.set(hold.id, hold);
      else this.#open.delete(hold.id);
    }
    for (const hold of batch.opened) this.#open.set(hold.id, hold);
    for (const id of this.#open.keys()) {
      if (this.#open.size <= OWN_MAX) break;
      this.#open.delete(id);
    }
  }

  /** After a batch that failed, which may have been committed all the same. */
  forget(): void {
    this.#open.clear();
    this.#version = undefined;
  }
}
