import type { Config } from "../../platform/config/config.ts";
import type { Secrets } from "../../platform/config/secrets.ts";

/** The input of every command of the operator. */
export interface Invocation {
  config: Config;
  secrets: Secrets;
  /** Whether to print JSON. */
  json: boolean;
}

/** Runs a command with the options and arguments of the command line. */
export type CommandHandler = (
  invocation: Invocation,
  options: Record<string, string>,
  given: unknown[],
) => Promise<void>;
