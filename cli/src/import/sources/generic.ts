import { hashSecret, hashSecret512 } from "../../../../engine/src/crypto/hash.ts";
import { hashAlgorithms } from "../../../../engine/src/rules/imported-keys.ts";
import { type Fields, fieldName } from "../fields.ts";
import { keyOf, type Mapped, presentObject, type Source } from "./source.ts";

/** The fields, besides `meta.…`. */
const names = [
  "hash",
  "key",
  "name",
  "externalId",
  "meta",
  "roles",
  "permissions",
  "expires",
  "enabled",
  "credits",
  "ratelimits",
  "allowedIps",
  "credits.remaining",
  "credits.refill.interval",
  "credits.refill.amount",
  "credits.refill.refillDay",
  "credits.refill.refillMonth",
  "credits.refill.timeZone",
  "credits.refill.rollover",
];
const known = new Set(names.map(fieldName));

/** Fields with the names of `keys.migrateKeys`, and `key` for key strings that are not hashed yet. */
export const generic: Source = {
  mapping:
    ({ algorithm }) =>
    (row) =>
      map(row, algorithm),
  left: {},
  algorithms: hashAlgorithms,
};

function map(row: Fields, algorithm: string): Mapped {
  const unknown = row.names().find((name) => !known.has(name) && !name.startsWith("meta."));
  if (unknown !== undefined) {
    return { rejected: `has a field ${unknown}. The fields are ${names.join(", ")}, and meta.NAME` };
  }
  const key = row.text("key");
  const hash = row.text("hash");
  if (key !== undefined && hash !== undefined) return { rejected: "has both hash and key" };
  if (key !== undefined && algorithm !== "sha256" && algorithm !== "sha512") {
    return { rejected: `has a key, which is hashed with sha256 or sha512 only. Give its hash for ${algorithm}` };
  }
  const hashed = key === undefined ? hash : algorithm === "sha512" ? hashSecret512(key) : hashSecret(key);
  const meta = row.json("meta");
  const ownMeta = row.names().filter((name) => name.startsWith("meta."));
  const refill = presentObject({
    interval: row.text("credits.refill.interval"),
    amount: row.number("credits.refill.amount"),
    refillDay: row.number("credits.refill.refillDay"),
    refillMonth: row.number("credits.refill.refillMonth"),
    timeZone: row.text("credits.refill.timeZone"),
    rollover: row.number("credits.refill.rollover"),
  });
  return keyOf(hashed, "has neither hash nor key", {
    name: row.text("name"),
    externalId: row.text("externalId"),
    meta:
      ownMeta.length === 0
        ? meta
        : {
            ...(meta as object | undefined),
            ...Object.fromEntries(ownMeta.map((name) => [name.slice(5), row.json(name)])),
          },
    roles: row.list("roles"),
    permissions: row.list("permissions"),
    expires: row.time("expires"),
    enabled: row.boolean("enabled"),
    credits: row.json("credits") ?? presentObject({ remaining: row.number("credits.remaining"), refill }),
    ratelimits: row.json("ratelimits"),
    allowedIps: row.list("allowedIps"),
  });
}
