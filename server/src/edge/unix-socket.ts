import { chmodSync, existsSync, lstatSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { dirname } from "node:path";
import { OperatorError } from "../log/operator-error.ts";
import { lockPath, removeLock } from "../platform/store/sqlite/claim.ts";

/** What connecting to a socket ends with if no process has it open. */
const UNUSED = "ECONNREFUSED";

/** The only peer that is not on the network, and on this machine all the same. */
const THIS_MACHINE = "127.0.0.1";

export interface UnixSocket {
  /** Listens no longer, and lets another edge take the path. Connections stay open. */
  close(): void;
}

/**
 * Listens on a Unix socket, which this user and its group may use.
 *
 * The path is locked until the end: edges that start at once would otherwise each find the socket of a process that was killed, and
 * the second one would remove that of the first.
 *
 * @throws {OperatorError} if another process listens there, or there is something else.
 */
export async function listenAt(path: string, accept: (connection: Socket) => void): Promise<UnixSocket> {
  if (!existsSync(dirname(path))) {
    throw new OperatorError(
      `--socket ${path}: the folder ${dirname(path)} does not exist. Make it, or choose another path`,
    );
  }
  const unlock = lock(path);
  try {
    await removeSocket(path);
    const server = createServer({ allowHalfOpen: true }, (connection: Socket) => {
      // Its peers are on this machine.
      Object.defineProperty(connection, "remoteAddress", { value: THIS_MACHINE });
      accept(connection);
    });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", (error) => reject(new OperatorError(`--socket ${path}: ${error.message}`, { cause: error })));
    server.listen(path, resolve);
    await promise;
    chmodSync(path, 0o660);
    return {
      close() {
        // Node removes the file.
        server.close();
        unlock();
      },
    };
  } catch (error) {
    unlock();
    throw error;
  }
}

/** Locks a path, and returns what ends that. The system does it for a process that is killed. */
function lock(path: string): () => void {
  let release: (() => void) | undefined;
  try {
    release = lockPath(path);
  } catch (error) {
    const { message } = error as Error;
    throw new OperatorError(`--socket ${path}: cannot make ${path}.lock (${message})`, { cause: error });
  }
  if (release === undefined) {
    throw new OperatorError(`--socket ${path}: another edge listens there. Stop it, or choose another path`);
  }
  return () => {
    removeLock(path);
    release();
  };
}

/**
 * Removes the socket of a process that was killed. Anything else at this path stays, also what a link leads to.
 *
 * @throws {OperatorError} unless nobody listens there: a process that is busy, or belongs to another user, does not answer.
 */
async function removeSocket(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) {
    throw new OperatorError(`--socket ${path}: there is something else. Remove it, or choose another path`);
  }
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const connection = connect(path, () => resolve(undefined));
  connection.on("error", ({ code }: NodeJS.ErrnoException) => resolve(code));
  const failure = await promise;
  connection.destroy();
  // Its process may have removed it meanwhile.
  if (failure === UNUSED || failure === "ENOENT") rmSync(path, { force: true });
  else if (failure === undefined) {
    throw new OperatorError(`--socket ${path}: another process listens there. Stop it, or choose another path`);
  } else {
    throw new OperatorError(
      `--socket ${path}: another process may listen there (${failure}). Remove it if not, or choose another path`,
    );
  }
}
