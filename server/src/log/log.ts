import { pino } from "pino";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** Where log lines go. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A destination that takes whole lines. */
export interface LogDestination {
  write(line: string): void;
}

// Field names that carry secrets in any object that might be logged by mistake.
const SECRET_FIELDS = ["key", "rootKey", "secret", "authorization", "plaintext", "databaseUrl", "password", "hash"];

/** Structured log lines as JSON. Fields that carry secrets are struck out wherever they stand in the first two levels. */
export function openLog(level: LogLevel, destination?: LogDestination): Log {
  const options = {
    level,
    base: {},
    redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), censor: "[secret]" },
  };
  return destination ? pino(options, destination) : pino(options);
}

/** An error as it may be logged: what happened and where, without what the database echoes of a row or a parameter. */
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
