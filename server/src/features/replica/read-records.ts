import type { DeletedKey, DirectoryKey } from "../../../../engine/src/directory/stored.ts";
import { replicaKey } from "./key-record.ts";

/** Of all records that are kept. Further ones are read for each question. */
const CHARACTERS_MAX = 16_000_000;
/** Of an entry besides its texts. */
const OVERHEAD = 150;

/** What edges get of the key with one hash, if they may open its API. */
export interface ReadRecord {
  /** Null: no edge may judge it. */
  readonly apiId: string | null;
  /** The record as JSON. */
  readonly json: string;
  /** Whether it changes without a row in `changes`: the first use of an imported key writes none. */
  readonly changesSilently: boolean;
}

/** The records of one workspace, by hash. */
export interface RecordsOfWorkspace {
  get(hash: string): ReadRecord | undefined;
  set(hash: string, record: ReadRecord): void;
}

/**
 * Records that edges have asked for since the last change. After a restart or an outage a thousand edges ask for the same
 * keys: they are read once.
 *
 * What is kept belongs to a position in `changes`, and is dropped with the first row after it, of whichever workspace. So a
 * kept record has all that the position has, like one that is read again, and never outlives a row that would invalidate it
 * at an edge.
 */
export class ReadRecords {
  readonly #present: () => string;
  #position: string | undefined;
  #workspaces = new Map<string, Map<string, ReadRecord>>();
  #characters = 0;

  /** @param present the position that this node has read up to. */
  constructor(present: () => string) {
    this.#present = present;
  }

  /**
   * Those of the present position. What is read from now on may be put there, also once the position has moved: then nobody
   * finds it.
   */
  current(workspaceId: string): RecordsOfWorkspace {
    const position = this.#present();
    if (position !== this.#position) {
      this.#position = position;
      this.#workspaces = new Map();
      this.#characters = 0;
    }
    const records = this.#workspaces.get(workspaceId) ?? new Map<string, ReadRecord>();
    this.#workspaces.set(workspaceId, records);
    return {
      get: (hash) => records.get(hash),
      set: (hash, record) => {
        if (record.changesSilently || position !== this.#position || records.has(hash)) return;
        this.#characters += hash.length + record.json.length + OVERHEAD;
        if (this.#characters <= CHARACTERS_MAX) records.set(hash, record);
      },
    };
  }
}

export const ELSEWHERE = { isElsewhere: true } as const;
/** That of a key that no edge may judge. */
export const NOT_HERE: ReadRecord = { apiId: null, json: JSON.stringify(ELSEWHERE), changesSilently: false };

/** What edges get of the keys with one hash. Those of migrations are found only by calls that name the migration. */
export function readRecord(rows: readonly (DirectoryKey | DeletedKey)[], isDerived: boolean): ReadRecord | undefined {
  if (isDerived) return NOT_HERE;
  if (rows.length === 0) return undefined;
  const key = rows.find(({ migration_id }) => migration_id === null);
  if (key === undefined) return NOT_HERE;
  const apiId = key.api_id;
  if ("deleted" in key) {
    const deleted = { isDeleted: true as const, keyId: key.id, apiId, identityId: key.identity_id };
    return { apiId, json: JSON.stringify(deleted), changesSilently: false };
  }
  const record = replicaKey(key);
  return { apiId, json: JSON.stringify(record), changesSilently: record.needs.includes("first_use") };
}
