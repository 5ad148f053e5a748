import { ConfigurationError, type Settings } from "./env.ts";

/** What must never be logged, apart from everything that may. */
export interface Secrets {
  /** Root key of an administrator of the default workspace. */
  rootKey: string | undefined;
  /** PostgreSQL's address with its password. */
  databaseUrl: string | undefined;
}

const ROOT_KEY_LENGTH_MIN = 24;

/** @throws {ConfigurationError} on a value that cannot be used; the message does not repeat it. */
export function readSecrets(values: Settings): Secrets {
  const rootKey = values.get("ROOT_KEY");
  if (rootKey !== undefined && !(rootKey.length >= ROOT_KEY_LENGTH_MIN && /^[\x21-\x7e]{1,512}$/.test(rootKey))) {
    throw new ConfigurationError(
      "LATCHKEY_ROOT_KEY",
      undefined,
      `give ${ROOT_KEY_LENGTH_MIN} to 512 visible ASCII characters without spaces`,
    );
  }
  return { rootKey, databaseUrl: values.get("DATABASE_URL") };
}
