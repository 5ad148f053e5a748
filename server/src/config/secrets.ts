import { ConfigurationError, type Settings } from "./env.ts";

/** What must never be logged, apart from everything that may. */
export interface Secrets {
  /** Root key of an administrator of the default workspace. */
  rootKey: string | undefined;
  /** PostgreSQL's address with its password. */
  databaseUrl: string | undefined;
  /** Redis' address with its password; undefined: limits are counted in this process. */
  redisUrl: string | undefined;
  /** ClickHouse's address with its password; undefined: analytics are kept beside the rest. */
  clickhouseUrl: string | undefined;
  /** Master keys of the vault, as base64: the current one and, while it is being changed, the next. */
  vaultKeys: string[];
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
  const redisUrl = values.get("REDIS_URL");
  if (redisUrl !== undefined && !(URL.canParse(redisUrl) && /^rediss?:$/.test(new URL(redisUrl).protocol))) {
    throw new ConfigurationError(
      "LATCHKEY_REDIS_URL",
      undefined,
      "give an address such as redis://user:password@host:6379",
    );
  }
  const clickhouseUrl = values.get("CLICKHOUSE_URL");
  if (
    clickhouseUrl !== undefined &&
    !(URL.canParse(clickhouseUrl) && /^https?:$/.test(new URL(clickhouseUrl).protocol))
  ) {
    throw new ConfigurationError(
      "LATCHKEY_CLICKHOUSE_URL",
      undefined,
      "give an address such as http://user:password@host:8123/database",
    );
  }
  return {
    redisUrl,
    clickhouseUrl,
    rootKey,
    databaseUrl: values.get("DATABASE_URL"),
    vaultKeys: vaultKeys(values.get("VAULT_KEY")),
  };
}

function vaultKeys(text: string | undefined): string[] {
  const keys = text === undefined ? [] : text.split(",").map((key) => key.trim());
  if (keys.length > 2 || !keys.every((key) => /^[A-Za-z0-9+/_-]{43}=?$/.test(key))) {
    throw new ConfigurationError(
      "LATCHKEY_VAULT_KEY",
      undefined,
      "give 32 bytes as base64 (openssl rand -base64 32), or two of them by comma while the key is being changed",
    );
  }
  return keys;
}
