import { ConfigurationError, type Settings } from "./env.ts";

/** What must never be logged, apart from everything that may. */
export interface Secrets {
  /** Root key of an administrator of the default workspace. */
  rootKey: string | undefined;
  /** The file that holds it, where it was given by one. */
  rootKeyFile: string | undefined;
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
  return {
    redisUrl: address(values, "REDIS_URL", /^rediss?:$/, "redis://user:password@host:6379"),
    clickhouseUrl: address(values, "CLICKHOUSE_URL", /^https?:$/, "http://user:password@host:8123/database"),
    rootKey,
    rootKeyFile: values.get("ROOT_KEY_FILE"),
    databaseUrl: values.get("DATABASE_URL"),
    vaultKeys: vaultKeys(values.get("VAULT_KEY")),
  };
}

/** An address of one of these protocols, if there is one. It may hold a password. */
function address(values: Settings, name: string, protocol: RegExp, example: string): string | undefined {
  const url = values.get(name);
  if (url !== undefined && !(URL.canParse(url) && protocol.test(new URL(url).protocol))) {
    throw new ConfigurationError(`LATCHKEY_${name}`, undefined, `give an address such as ${example}`);
  }
  return url;
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
