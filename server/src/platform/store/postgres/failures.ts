/** System errors and SQLSTATEs of a server that is unreachable, shutting down, read-only, overloaded or too slow. */
const UNAVAILABLE_CODE =
  /^(E(CONN\w+|PIPE|TIMEDOUT|NOTFOUND|NOENT|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|AI_AGAIN)|08...|25006|25P0[234]|28...|3D000|53...|55P03|57014|57P..|58...)$/;
/** Messages of errors that `pg` reports without a code. */
const UNAVAILABLE_MESSAGE =
  /^(Connection terminated|timeout e|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after|Received unexpected|There was an error establishing an SSL)/;
/** Serialization failure and deadlock: the transaction was rolled back and can be retried. */
const RETRYABLE = new Set(["40001", "40P01"]);

/** Insufficient privilege. */
const FORBIDDEN_CODE = "42501";
/** A table, a function or another part of the schema exists already. */
const EXISTS_CODES = new Set(["42P07", "42723", "42710"]);

interface PostgresError {
  code?: string;
  severity?: string;
  message?: string;
}

/** Whether the database caused the error, and not the statement. */
export function isUnavailable(error: unknown): boolean {
  const { code, message } = error as PostgresError;
  return code === undefined ? UNAVAILABLE_MESSAGE.test(message ?? "") : UNAVAILABLE_CODE.test(code);
}

export function isRetryable(error: unknown): boolean {
  return RETRYABLE.has((error as PostgresError).code ?? "");
}

/** Whether a statement waited too long for a lock: the transaction was rolled back and can be retried. */
export function isLockTimeout(error: unknown): boolean {
  return (error as PostgresError).code === "55P03";
}

/** Whether the server rejected a statement and the connection stays usable. */
export function isRejection(error: unknown): boolean {
  return (error as PostgresError).severity === "ERROR";
}

/** What only an operator can change about the database, as a sentence for them; undefined for other errors. */
export function remedyOf(error: unknown): string | undefined {
  const { code = "" } = error as PostgresError;
  if (code === FORBIDDEN_CODE) {
    return (
      "The role of the service has to own its tables, and may create more in their schema: make an empty database with " +
      "`createdb --owner=ROLE`, and restore a dump with `pg_restore --no-owner --role=ROLE`."
    );
  }
  return EXISTS_CODES.has(code) ? "Something else is in this database: give the service one of its own." : undefined;
}

/** Whether there was no reply. A firewall may drop the packets of all connections of the same age. */
export function isSilence(error: unknown): boolean {
  const { code, message } = error as PostgresError;
  return message === "Query read timeout" || code === "ETIMEDOUT" || code === "EHOSTUNREACH";
}

/** Whether the server, or the machine that it runs on, caused the error by sending something. */
export function isAnswer(error: unknown): boolean {
  return (error as PostgresError).code !== undefined && !isSilence(error);
}

/** Whether the server has become a standby, or read-only by a setting. */
export function isReadOnly(error: unknown): boolean {
  return (error as PostgresError).code === "25006";
}

/** Whether the connection has ended, for example by a restart of the server. Another connection may work. */
export function isLost(error: unknown): boolean {
  return isUnavailable(error) && !isRejection(error) && !isSilence(error);
}
