import { pino } from "pino";
import { type LogDestination, LogOutput } from "./output.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** A structured log. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Undefined unless the level is `debug` or lower, so that nobody collects fields for nothing. */
  debug?: ((fields: object, message: string) => void) | undefined;
}

// Names of fields that may contain secrets, in case such an object is logged by mistake.
const SECRET_FIELDS = ["key", "rootKey", "secret", "authorization", "plaintext", "databaseUrl", "password", "hash"];

/** Opens a log that writes JSON lines. Fields with secrets are censored in the first two levels of an object. */
export function openLog(level: LogLevel, destination: LogDestination): Log {
  const options = {
    level,
    base: {},
    redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), censor: "[secret]" },
  };
  const log = pino(options, destination);
  const { info, warn, error, debug } = log;
  const open: Log = { info: info.bind(log), warn: warn.bind(log), error: error.bind(log) };
  return log.isLevelEnabled("debug") ? { ...open, debug: debug.bind(log) } : open;
}

/** Opens the log of the process, on the standard output. */
export function openProcessLog(level: LogLevel): { log: Log; output: LogOutput } {
  const output = new LogOutput({
    fd: 1,
    onFailure: (code) =>
      process.stderr.write(`latchkey: the log cannot be written (${code}). The service goes on without it.\n`),
    onDropped: (lines) => log.warn({ lines }, "lines of the log are lost, because it could not be written"),
  });
  const log = openLog(level, output);
  process.once("exit", () => output.end());
  return { log, output };
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
