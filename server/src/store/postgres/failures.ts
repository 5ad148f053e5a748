/** System errors and SQLSTATEs of a server that is away, going away, read-only, overloaded or too slow. */
const UNAVAILABLE_CODE =
  /^(E(CONN\w+|PIPE|TIMEDOUT|NOTFOUND|NOENT|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|AI_AGAIN)|08...|25006|25P0[234]|28...|3D000|53...|55P03|57014|57P..|58...)$/;
/** What `pg` reports without a code. */
const UNAVAILABLE_MESSAGE =
  /^(Connection terminated|timeout e|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after|Received unexpected|There was an error establishing an SSL)/;
/** Serialization failure and deadlock: nothing was kept, and the remedy is to try again. */
const RETRYABLE = new Set(["40001", "40P01"]);

interface PostgresError {
  code?: string;
  severity?: string;
  message?: string;
}

/** Whether the database, not the statement, is the reason. */
export function isUnavailable(error: unknown): boolean {
  const { code, message } = error as PostgresError;
  return code === undefined ? UNAVAILABLE_MESSAGE.test(message ?? "") : UNAVAILABLE_CODE.test(code);
}

export function isRetryable(error: unknown): boolean {
  return RETRYABLE.has((error as PostgresError).code ?? "");
}

/** Whether the server rejected a statement over a connection that goes on. */
export function isRejection(error: unknown): boolean {
  return (error as PostgresError).severity === "ERROR";
}

/** Whether there was no answer at all: packets may be dropped on every connection that is as old. */
export function isSilence(error: unknown): boolean {
  const { code, message } = error as PostgresError;
  return message === "Query read timeout" || code === "ETIMEDOUT" || code === "EHOSTUNREACH";
}

/** Whether the server has become a standby, or read-only by a setting. */
export function isReadOnly(error: unknown): boolean {
  return (error as PostgresError).code === "25006";
}

/** Whether the connection has ended, as its server restarted for instance. Another one may work. */
export function isLost(error: unknown): boolean {
  return isUnavailable(error) && !isRejection(error) && !isSilence(error);
}
