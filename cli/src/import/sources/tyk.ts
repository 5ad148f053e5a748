import { sha256 } from "../../../../engine/src/crypto/digest.ts";
import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { type Fields, isObject } from "../fields.ts";
import { keyOf, limitOf, presentObject, type Source } from "./source.ts";

/** Hashes of Tyk by their length as hex. */
const hashes: Readonly<Record<number, string>> = { 8: "murmur32", 16: "murmur64", 32: "murmur128", 64: "sha256" };
const HEX = /^[0-9a-f]+$/;
/** An id that Tyk makes: a UUID without hyphens. */
const MADE_ID = /^[0-9a-f]{32}$/;

/**
 * Sessions of the Tyk Gateway: a row has a session, or has one as `session` or `data`, and the key string as `key` or its
 * hash as `key_hash` or `key_id`.
 */
export const tyk: Source = {
  mapping:
    ({ sourceApi }) =>
    (row) =>
      map(row, sourceApi),
  unfold(row) {
    const session = [row.session, row.data].find(isObject);
    if (!session) return [row];
    const { session: _, data: __, key_id, ...own } = row;
    // In a session, `key_id` is the id that the key was made with; around it, the text under which it is stored.
    return [{ ...session, ...own, ...(key_id !== undefined && { stored_id: key_id }) }];
  },
  left: {
    lastCheck: null,
    allowance: null,
    dateCreated: null,
    lastUpdated: null,
    dataExpires: null,
    quotaRenews: null,
    sessionLifetime: null,
    idExtractorDeadline: null,
    apiModel: null,
    apiId: null,
    orgId: null,
    postExpiryAction: null,
    enableDetailRecording: null,
    enableDetailedRecording: null,
    applyPolicyId: null,
    per: null,
    quotaRenewalRate: null,
    postExpiryGracePeriod: null,
    throttleInterval: "requests over a limit are refused here and not queued",
    throttleRetryLimit: "requests over a limit are refused here and not queued",
    maxQueryDepth: "GraphQL is not inspected here",
    smoothing: "limits do not grow with their use here",
    monitor: "there are no trigger limits here: watch the analytics of the key",
    oauthKeys: "OAuth tokens are not imported",
  },
  algorithms: ["sha256"],
  hasApis: true,
};

function map(row: Fields, sourceApi: string | undefined) {
  const other = otherCredential(row);
  if (other !== undefined) return { skipped: other };
  const access = row.object("accessRights") ?? {};
  const granted = sourceApi === undefined ? undefined : access[sourceApi];
  if (sourceApi !== undefined && granted === undefined) return { skipped: "has no access to the API of --source-api" };

  const found = hashOf(row);
  if ("rejected" in found) return found;
  const limits = limitsOf(row, isObject(granted) ? granted : undefined);
  noteAccess(row, access, sourceApi);

  const expires = row.number("expires");
  const metadata = row.object("metaData");
  const tags = row.list("tags");
  const policies = row.list("applyPolicies");
  const own = presentObject({
    tags: Array.isArray(tags) && tags.length > 0 ? tags : undefined,
    policies: Array.isArray(policies) && policies.length > 0 ? policies : undefined,
    apis: Object.keys(access).length > 0 ? Object.keys(access) : undefined,
  });
  return keyOf(found.hash, "has no key and no hash", {
    name: row.text("alias"),
    externalId: metadata?.tyk_developer_id ?? undefined,
    meta: presentObject({ ...metadata, ...(own && { tyk: own }) }),
    expires: typeof expires === "number" && expires > 0 ? row.time("expires") : undefined,
    enabled: row.boolean("isInactive") === true ? false : undefined,
    ...limits,
  });
}

/** What a session belongs to if it is not that of a key that is sent as a whole. */
function otherCredential(row: Fields): string | undefined {
  const has = (name: string, member: string) => Boolean(row.object(name)?.[member]);
  if (has("basicAuthData", "password")) return "is a user of basic authentication";
  if (has("jwtData", "secret")) return "is a secret for JWTs";
  if (row.boolean("hmacEnabled") === true || row.value("hmacString") !== undefined)
    return "is a secret for HMAC signatures";
  if (row.boolean("enableHttpSignatureValidation") === true || row.value("rsaCertificateId") !== undefined) {
    return "is a certificate for HTTP signatures";
  }
  if (row.value("oauthClientId") !== undefined) return "is an OAuth token";
  const certificates = row.value("mtlsStaticCertificateBindings");
  if (row.value("certificate") !== undefined || (Array.isArray(certificates) && certificates.length > 0)) {
    return "belongs to a client certificate";
  }
  return undefined;
}

/** The SHA-256 of the string that clients send. */
function hashOf(row: Fields): { hash: string | undefined } | { rejected: string } {
  const key = row.text("key");
  const id = row.text("keyId");
  const org = row.text("orgId");
  const stored = row.text("keyHash", "hash", "storedId");
  if (key !== undefined) return { hash: hashSecret(key) };
  const text = stored ?? id;
  if (text === undefined) return { hash: undefined };
  const algorithm = HEX.test(text) ? hashes[text.length] : undefined;
  if (algorithm === undefined) return { hash: hashSecret(text) };
  if (algorithm !== "sha256") {
    return {
      rejected: `is stored as ${algorithm}, which is no cryptographic hash: another key with that hash can be computed, so it cannot be verified here. Give the key string as \`key\`, or make a new key`,
    };
  }
  if (id === undefined || id === text) {
    row.note(
      "key_hash",
      "Tyk hashes a key with an id of your choice inside a longer token. If the key has one, it does not verify here: give it as `key`",
    );
  } else if (!MADE_ID.test(id)) {
    // Clients send the id; Tyk makes the token from it.
    const token = Buffer.from(`{"org":"${org ?? ""}","id":"${id}","h":"sha256"}`).toString("base64");
    if ([token, id].some((sent) => sha256(sent).toString("hex") === text)) return { hash: hashSecret(id) };
  }
  return { hash: text };
}

/** The limits of a session, or those of one API where the session has any for it. */
function limitsOf(row: Fields, granted: Record<string, unknown> | undefined) {
  const own = granted && isObject(granted.limit) ? granted.limit : undefined;
  const session = {
    rate: row.number("rate"),
    per: row.number("per"),
    quota_max: row.number("quotaMax"),
    quota_remaining: row.number("quotaRemaining"),
    quota_renewal_rate: row.number("quotaRenewalRate"),
  };
  const isOwn =
    own !== undefined && [own.rate, own.quota_max].some((value) => typeof value === "number" && value !== 0);
  const { rate, per, quota_max: max, quota_remaining: remaining, quota_renewal_rate: renewal } = isOwn ? own : session;
  const limits = [limitOf("rate", rate, per), limitOf("quota", max, renewal)].filter((limit) => limit !== undefined);
  const isQuota = typeof max === "number" && max > 0;
  if (isQuota && limits.some(({ name }) => name === "quota") && remaining !== max) {
    row.note("quota_remaining", "what is used of a quota is not imported: its window begins with the import");
  }
  return {
    ratelimits: limits.length > 0 ? limits : undefined,
    // A quota that is never renewed is a balance.
    credits:
      isQuota && !(typeof renewal === "number" && renewal > 0) ? { remaining: balanceOf(max, remaining) } : undefined,
  };
}

function balanceOf(max: number, remaining: unknown): number {
  return typeof remaining === "number" && remaining >= 0 ? remaining : max;
}

function noteAccess(row: Fields, access: Record<string, unknown>, sourceApi: string | undefined): void {
  const apis = Object.values(access).filter(isObject);
  if (apis.length > 1 && sourceApi === undefined) {
    row.note(
      "access_rights",
      "a key belongs to one API here, and its metadata names those of Tyk: give permissions to distinguish them, or import the keys of one API with --source-api",
    );
  }
  if (apis.some(({ allowed_urls: urls }) => Array.isArray(urls) && urls.length > 0)) {
    row.note("allowed_urls", "paths and methods are not checked here: use permissions");
  }
  const policies = row.json("applyPolicies");
  if (row.value("applyPolicyId") !== undefined || (Array.isArray(policies) && policies.length > 0)) {
    row.note(
      "apply_policies",
      "a policy can set other limits than those of the key, and its own are not imported: compare them and set what differs",
    );
  }
}
