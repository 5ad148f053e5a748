import { hashSecret } from "../../../../crypto/hash.ts";
import { type Fields, isObject } from "../fields.ts";
import { keyOf, presentObject, type Source } from "./source.ts";

/**
 * The credentials of the plugin key-auth of Kong: from `/key-auths` of the Admin API, from the table
 * `keyauth_credentials`, or from the consumers of a declarative configuration. Kong stores key strings.
 */
export const kong: Source = {
  mapping: ({ others, now }) => {
    const consumers = consumersOf(others);
    return (row) => map(row, consumers, now);
  },
  left: {
    ...{ id: null, createdAt: null, updatedAt: null, wsId: null, cacheKey: null },
    groups: "ACL groups become permissions or roles: give them to the keys of the consumer",
    acls: "ACL groups become permissions or roles: give them to the keys of the consumer",
    plugins: "plugins of a consumer, such as rate limiting, become limits of its keys or of its identity",
  },
  unfold(row) {
    const credentials = row.keyauth_credentials;
    if (!Array.isArray(credentials)) return [row];
    const { keyauth_credentials: _, tags, ...consumer } = row;
    const { acls, groups, plugins, ...named } = consumer;
    return credentials.filter(isObject).map((credential) => ({
      consumer: named,
      ...(acls !== undefined && { acls }),
      ...(groups !== undefined && { groups }),
      ...(plugins !== undefined && { plugins }),
      ...credential,
    }));
  },
  algorithms: ["sha256"],
  others: "consumers of the Admin API (/consumers)",
};

function map(row: Fields, consumers: ReadonlyMap<string, Record<string, unknown>>, now: number) {
  if (row.value("keyIdent") !== undefined) {
    return {
      rejected:
        "is a credential of key-auth-enc, whose key strings are encrypted. Read them from the Admin API of Kong, which decrypts them",
    };
  }
  const key = row.text("key");
  if (key === undefined && row.value("username", "customId") !== undefined) {
    return { skipped: "is a consumer without credentials" };
  }
  const nested = row.object("consumer");
  const id = row.text("consumerId") ?? nested?.id ?? (nested === undefined ? row.text("consumer") : undefined);
  const consumer = { ...nested, ...consumers.get(String(id)) };
  const named = [consumer.custom_id, consumer.username].find((name) => typeof name === "string" && name !== "");
  if (named === undefined && id !== undefined) {
    row.note("consumer", "the external id is the id of the consumer. Give --with consumers.json to import its name");
  }
  const ttl = row.number("ttl");
  return keyOf(key === undefined ? undefined : hashSecret(key), "has no key", {
    name: row.text("id"),
    externalId: named ?? id,
    meta: presentObject({ tags: row.list("tags") }),
    // The Admin API gives the remaining seconds; the table has the time of the end.
    expires: typeof ttl === "number" ? now + ttl * 1_000 : row.time("ttl"),
  });
}

/** The consumers in answers of the Admin API, by their id. */
function consumersOf(documents: readonly unknown[]): ReadonlyMap<string, Record<string, unknown>> {
  const consumers = documents.flatMap((document) =>
    Array.isArray(document) ? document : isObject(document) && Array.isArray(document.data) ? document.data : [],
  );
  return new Map(consumers.filter(isObject).map((consumer) => [String(consumer.id), consumer]));
}
