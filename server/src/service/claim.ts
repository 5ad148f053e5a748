import { accessSync, constants, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Events } from "../log/events.ts";
import { OperatorError } from "../log/operator-error.ts";
import { newId, type Random } from "../random/random.ts";
import { lockPath } from "../store/sqlite/claim.ts";
import type { Claim, GroupMark, Store } from "../store/store.ts";

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

/**
 * Creates a folder that only its owner may read, and the folders above it. Returns those that did not exist, the innermost
 * first.
 */
export function makeFolder(folder: string): string[] {
  const make = (path: string) => {
    try {
      mkdirSync(path, { mode: 0o700 });
      return [path];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !statSync(path).isDirectory()) throw error;
      return [];
    }
  };
  try {
    return make(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(folder) === folder) throw error;
    // Node's recursive mkdir never returns on a file system that always answers ENOENT, such as /proc.
    const above = makeFolder(dirname(folder));
    return [...make(folder), ...above];
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

/** The error of a path that cannot be used, as one line that names the setting. */
export function unusable(setting: string, path: string, error: unknown): unknown {
  if (error instanceof OperatorError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = reasonOf(error);
  return reason === undefined && code === undefined
    ? error
    : new OperatorError(`${setting}=${path}: ${reason ?? message}`, { cause: error });
}

/** Why a path cannot be used, and what to do; undefined for an error that is neither the system's nor SQLite's. */
export function reasonOf(error: unknown): string | undefined {
  const { code, errcode, errstr, message } = error as NodeJS.ErrnoException & { errcode?: number; errstr?: string };
  // Extended codes carry the primary one in their lowest byte.
  if (errcode !== undefined && (errcode & 0xff) === SQLITE_FULL) return reasons.ENOSPC;
  return reasons[code ?? ""] ?? (errcode === undefined ? undefined : `SQLite reports: ${errstr ?? message}`);
}

const SQLITE_FULL = 13;

const reasons: Readonly<Record<string, string | undefined>> = {
  EACCES: "this account may not write there. Change the owner of the folder, or name another one",
  EPERM: "this account may not write there. Change the owner of the folder, or name another one",
  EROFS: "the file system is read-only. Name a folder on one that can be written",
  ENOSPC: "the disk is full. Make room, or name a folder on another disk",
  EDQUOT: "the disk quota is used up. Make room, or name a folder on another disk",
  EEXIST: "there is a file in the place of the folder. Remove it, or name another folder",
  ENOTDIR: "a part of this path is a file. Name another folder",
  ENOENT: "the folder cannot be created there. Name another one",
  ELOOP: "the symbolic links in this path form a loop. Name another folder",
  ENAMETOOLONG: "the path is too long. Name another folder",
};

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
    ...{ shared, lease, holder, formerHolders },
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
