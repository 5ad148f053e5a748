import { accessSync, constants, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId, type Random } from "../../../engine/src/random/random.ts";
import type { Events } from "../log/events.ts";
import { OperatorError } from "../log/operator-error.ts";
import type { Config } from "../platform/config/config.ts";
import { makeFolder, unusable } from "../platform/store/folder.ts";
import { lockPath } from "../platform/store/sqlite/claim.ts";
import type { Claim, GroupMark, Store } from "../platform/store/store.ts";

/** Another process has the claim on the database. Two processes would count limits separately. */
export class SecondNode extends OperatorError {
  constructor({ isEmbedded }: Pick<Store, "isEmbedded">) {
    super(
      isEmbedded
        ? "Another Latchkey serves from this embedded database, which is for one process. Stop it, or move to PostgreSQL " +
            "and Redis (LATCHKEY_DATABASE_URL, LATCHKEY_REDIS_URL) for several nodes."
        : "Another Latchkey serves from this database, and each would count limits for itself. Stop it, or give every " +
            "node the same LATCHKEY_REDIS_URL, so that they count together.",
    );
    this.name = "SecondNode";
  }
}

/** A data folder that this process has locked. */
export interface ClaimedFolder {
  /** The name of this process in its claim on a database. */
  readonly holder: string;
  /** The names of earlier processes on this folder; all of them have ended. */
  readonly formerHolders: readonly string[];
  release(): void;
}

/** Names of earlier processes in the file. More than one, because a failed start adds a name too. */
const FORMER_HOLDERS_MAX = 10;

/**
 * Creates the data folder if it does not exist, and locks it for this process. Two processes would overwrite each
 * other's files: counters, analytics, the vault key and the embedded databases.
 *
 * @throws {OperatorError} when the folder cannot be used, or another process has locked it.
 */
export function claimFolder(config: Config, random: Random): ClaimedFolder {
  const folder = config.dataDirectory;
  let release: (() => void) | undefined;
  try {
    makeFolder(folder);
    // SQLite, which locks the folder, would not say why it cannot open a file there.
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    release = lockPath(join(folder, "folder"));
    if (release === undefined) {
      throw new OperatorError(
        `LATCHKEY_DATA_DIR=${folder}: another Latchkey serves from this data folder. Stop it, or give each process a ` +
          "data folder of its own.",
      );
    }
    const file = join(folder, "holders");
    const formerHolders = readHolders(file);
    const holder = newId(random, "node");
    writeFileSync(`${file}.next`, JSON.stringify([holder, ...formerHolders].slice(0, FORMER_HOLDERS_MAX)));
    renameSync(`${file}.next`, file);
    return { holder, formerHolders, release };
  } catch (error) {
    release?.();
    throw unusable("LATCHKEY_DATA_DIR", folder, error);
  }
}

function readHolders(file: string): string[] {
  try {
    const names: unknown = JSON.parse(readFileSync(file, "utf8"));
    return Array.isArray(names) ? names.filter((name) => typeof name === "string" && /^node_\w+$/.test(name)) : [];
  } catch {
    // No file yet, or an incomplete one. Without the names, the claim waits for the lease of the previous process.
    return [];
  }
}

/**
 * Claims the database: exclusively, or, with Redis, together with the processes that count in the same Redis.
 *
 * @throws {SecondNode}
 */
export async function claimDatabase(
  store: Pick<Store, "claim" | "isEmbedded">,
  { shared, lease }: { shared: boolean; lease: number },
  { holder, formerHolders }: ClaimedFolder,
  events: Events,
  onTaken: (error: OperatorError) => void,
): Promise<Claim> {
  const claim = await store.claim({
    shared,
    lease,
    holder,
    formerHolders,
    onWait: events.claimWaits,
    onLost: events.claimLost,
    onRegained: events.claimRegained,
    onTaken: () => onTaken(new SecondNode(store)),
  });
  if (claim === undefined) throw new SecondNode(store);
  return claim;
}

/** The key in Redis that identifies the group of nodes that count for one database. `prefix` determines its slot. */
export function groupMark(
  databaseId: string,
  send: (args: readonly string[]) => Promise<unknown>,
  prefix = "latchkey:",
): GroupMark {
  const key = `${prefix}group:${databaseId}`;
  return {
    async read() {
      const value = await send(["GET", key]);
      return typeof value === "string" ? value : null;
    },
    async write(mark) {
      await send(["SET", key, mark]);
    },
  };
}
