import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { unkeyDumpRows } from "../dump/unkey.ts";
import type { Fields } from "../fields.ts";
import { keyOf, present, type Source } from "./source.ts";

/** What fits every key of Unkey, whether its row comes from a table, from a dump of all tables or from the API. */
const left = {
  pk: null,
  id: null,
  keyId: null,
  start: null,
  workspaceId: null,
  keyAuthId: null,
  identityId: null,
  createdAtM: null,
  createdAt: null,
  updatedAtM: null,
  updatedAt: null,
  lastUsedAt: null,
  lastRefillAt: null,
  ratelimitAsync: null,
  pendingMigrationId: null,
  identity: null,
  environment: "keys have no environment here: make one API for each environment",
  encrypted: "the encrypted key string stays at Unkey: a key is recoverable here only if it is made or rerolled here",
};

/** A row of the table `keys`, or a key of `apis.listKeys`. `hash` is the SHA-256 as base64. */
function map(row: Fields) {
  if (row.value("deletedAtM", "deletedAt") !== undefined) return { skipped: "was deleted" };
  if (row.value("forWorkspaceId") !== undefined) return { skipped: "is a root key of Unkey" };
  const plaintext = row.text("plaintext");
  const identity = row.object("identity");
  const remaining = row.number("remainingRequests", "remaining", "credits.remaining");
  const amount = row.number("refillAmount", "credits.refill.amount");
  const day = row.number("refillDay", "credits.refill.refillDay");
  const limit = row.number("ratelimitLimit");
  const duration = row.number("ratelimitDuration");
  const roles = row.list("roles");
  if (roles !== undefined && row.value("rolePermissions") === undefined) {
    row.note(
      "roles",
      "a role that does not exist yet is created without permissions: give it those that it has at Unkey",
    );
  }
  if (row.value("pendingMigrationId") !== undefined && row.value("migrationAlgorithm") === undefined) {
    row.note(
      "pending_migration_id",
      "if that migration hashes the last part of a token, the key does not verify: import it with --from unkey-dump and --algorithm prefixed-api-key",
    );
  }
  const externalId = row.text("externalId", "ownerId") ?? identity?.externalId;
  if (externalId === undefined && row.value("identityId") !== undefined) {
    row.note("identity_id", "its identity is not in the file, so the key has no owner: add a column external_id");
  }
  for (const note of (row.value("rolePermissions") as string[] | undefined) ?? []) row.note("roles", note);
  if (identity?.meta !== undefined && Object.keys(identity.meta as object).length > 0) {
    row.note("identity.meta", "metadata of identities is not imported: set it with identities.updateIdentity");
  }
  if (Array.isArray(identity?.ratelimits) && identity.ratelimits.length > 0) {
    row.note("identity.ratelimits", "limits of identities are not imported: set them with identities.updateIdentity");
  }
  return keyOf(
    plaintext === undefined ? row.text("hash") : hashSecret(plaintext),
    row.value("keyId") === undefined
      ? "has no hash"
      : "has no key string: Unkey gives only those of recoverable keys. Import it from a database dump, or make a new key",
    {
      name: row.text("name"),
      externalId,
      meta: row.json("meta"),
      roles,
      permissions: row.list("permissions"),
      expires: row.time("expires"),
      enabled: row.boolean("enabled"),
      credits:
        row.json("credits") ??
        (remaining === undefined
          ? undefined
          : present({
              remaining,
              refill:
                amount === undefined
                  ? undefined
                  : day === undefined
                    ? { interval: "daily", amount }
                    : { interval: "monthly", amount, refillDay: day },
            })),
      ratelimits:
        row.json("ratelimits") ??
        (limit === undefined ? undefined : [{ name: "default", limit, duration, autoApply: true }]),
    },
  );
}

/** The table `keys` as CSV or JSON, or what `apis.listKeys` answers. */
export const unkey: Source = { mapping: () => map, left, algorithms: ["sha256"], isDownloadable: true };

const PENDING =
  "belongs to a migration of Unkey that hashes the last part of a token. Import those keys with --algorithm prefixed-api-key";

/** A dump of all tables. */
export const unkeyDump: Source = {
  mapping:
    ({ algorithm }) =>
    (row) => {
      const isPrefixed = row.text("migrationAlgorithm") === "github.com/seamapi/prefixed-api-key";
      if (isPrefixed && algorithm === "sha256") return { rejected: PENDING };
      if (!isPrefixed && algorithm === "prefixed-api-key") return { skipped: "is not pending in a migration" };
      return map(row);
    },
  left,
  dump: unkeyDumpRows,
  algorithms: ["sha256", "prefixed-api-key"],
  hasApis: true,
};
