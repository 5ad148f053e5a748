import { InvalidRedisAddress, parseRedisAddress } from "../redis/address.ts";
import type { SettingTexts } from "./env.ts";
import { readSettings, type Setting, setting, type ValuesOf } from "./setting-kinds.ts";

const ROOT_KEY_LENGTH_MIN = 24;

/** Every setting that is a secret only, at the place of its value in `Secrets`. */
export const secretSettings = {
  rootKey: setting(
    "ROOT_KEY",
    {
      unset: undefined,
      shownDefault: "made once",
      isSecret: true,
      flag: "file",
      help: "root key of an administrator of the default workspace",
    },
    (given, reject) =>
      given.length >= ROOT_KEY_LENGTH_MIN && /^[\x21-\x7e]{1,512}$/.test(given)
        ? given
        : reject(`give ${ROOT_KEY_LENGTH_MIN} to 512 visible ASCII characters without spaces`),
  ),
  vaultKeys: setting(
    "VAULT_KEY",
    {
      unset: [] as string[],
      shownDefault: "embedded: made once; PostgreSQL: none",
      isSecret: true,
      flag: "file",
      help: "master key of the vault, 32 bytes as base64; during a rotation: old,new",
    },
    (given, reject) => {
      const keys = given.split(",").map((key) => key.trim());
      return keys.length <= 2 && keys.every((key) => /^[A-Za-z0-9+/_-]{43}=?$/.test(key))
        ? keys
        : reject(
            "give 32 bytes as base64 (openssl rand -base64 32); during a rotation, two of them with a comma between",
          );
    },
  ),
  redisUrl: setting(
    "REDIS_URL",
    {
      unset: undefined,
      shownDefault: "none",
      isSecret: true,
      help: "redis://…, redis+cluster://… or redis+sentinel://…, where several nodes count limits together",
    },
    (given, reject) => {
      try {
        parseRedisAddress(given);
        return given;
      } catch (error) {
        if (error instanceof InvalidRedisAddress) return reject(error.message);
        throw error;
      }
    },
  ),
  clickhouseUrl: address("CLICKHOUSE_URL", {
    protocol: /^https?:$/,
    example: "http://user:password@host:8123/database",
    help: "http://user:password@host:8123/database, which stores analytics instead of the database",
  }),
};

/** What the service must never log. */
export type Secrets = ValuesOf<typeof secretSettings> & {
  /** The file that gave the root key. */
  rootKeyFile: string | undefined;
  /** PostgreSQL's address with its password. */
  databaseUrl: string | undefined;
};

/** @throws {ConfigurationError} on a value that cannot be used; the message does not repeat it. */
export function readSecrets(texts: SettingTexts): Secrets {
  return {
    ...readSettings(secretSettings, texts),
    rootKeyFile: texts.get("ROOT_KEY_FILE"),
    databaseUrl: texts.get("DATABASE_URL"),
  };
}

/** An address with one of these protocols. It may hold a password. */
function address(
  name: string,
  { help, protocol, example }: { help: string; protocol: RegExp; example: string },
): Setting<string | undefined> {
  return setting(name, { unset: undefined, shownDefault: "none", isSecret: true, help }, (given, reject) =>
    URL.canParse(given) && protocol.test(new URL(given).protocol)
      ? given
      : reject(`give an address such as ${example}`),
  );
}
