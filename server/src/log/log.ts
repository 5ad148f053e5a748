import { pino } from "pino";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** A structured log. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Undefined unless the level is `debug` or lower, so that nobody collects fields for nothing. */
  debug?: ((fields: object, message: string) => void) | undefined;
}

/** Receives whole log lines. */
export interface LogDestination {
  write(line: string): void;
}

// Names of fields that may contain secrets, in case such an object is logged by mistake.
const SECRET_FIELDS = ["key", "rootKey", "secret", "authorization", "plaintext", "databaseUrl", "password", "hash"];

/** Opens a log that writes JSON lines. Fields with secrets are censored in the first two levels of an object. */
export function openLog(level: LogLevel, destination?: LogDestination): Log {
  const options = {
    level,
    base: {},
    redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), censor: "[secret]" },
  };
  const log = destination ? pino(options, destination) : pino(options);
  const { info, warn, error, debug } = log;
  const open: Log = { info: info.bind(log), warn: warn.bind(log), error: error.bind(log) };
  return log.isLevelEnabled("debug") ? { ...open, debug: debug.bind(log) } : open;
}

/** The log fields of an error: name, message and stack, without the row values and parameters that databases add. */
export function loggable(error: unknown): object {
  if (!(error instanceof Error)) return { error: { message: String(error) } };
  const { name, message, stack, cause } = error;
  const code = (error as NodeJS.ErrnoException).code;
  return {
    error: {
      name,
      message,
      ...(code !== undefined && { code }),
      ...(stack && {
        stack: stack
          .split("\n")
          .slice(1, 8)
          .map((line) => line.trim()),
      }),
      ...(cause !== undefined && { cause: cause instanceof Error ? cause.message : String(cause) }),
    },
  };
}
