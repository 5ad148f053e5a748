import { z } from "zod";
import { hashSecret, hashSecret512 } from "../../../../engine/src/crypto/hash.ts";
import { hasValidChecksum, isOwnSecret } from "../../../../engine/src/rules/key-string.ts";
import { type QueryContext, query } from "../../platform/rpc/operation.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import type { WebhookRow } from "../../platform/store/schema.ts";
import { fold } from "../../platform/store/search.ts";
import { exampleKey, exampleSecret, exampleTime } from "../../platform/vocabulary/examples.ts";
import { asSecret, integer, text } from "../../platform/vocabulary/schema.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { WEBHOOKS_PER_WORKSPACE_MAX, WebhookReader } from "../webhooks/statements/webhooks.ts";
import {
  type FoundKey,
  type FoundRow,
  SEARCH_EXAMINED_MAX,
  SEARCH_OTHERS_EXAMINED_MAX,
  SearchReader,
  searchedKinds,
} from "./statements.ts";

/** The most words that a search compares. */
export const SEARCH_WORDS_MAX = 8;

const kinds = ["key", "identity", "api", "budget", "namespace", "webhook", "role", "permission", "rootKey"] as const;
type Kind = (typeof kinds)[number];

/** The permissions to read objects, by kind. */
const reading = {
  key: ["apis.{apiId}.read_key", "apis.{apiId}.read_api"],
  api: ["apis.{apiId}.read_api"],
  identity: ["identities.{identityId}.read_identity"],
  budget: ["budgets.{budgetId}.read_budget"],
  namespace: ["ratelimits.*.read_namespace"],
  webhook: ["webhooks.{webhookId}.read_webhook"],
  role: ["permissions.*.read_role"],
  permission: ["permissions.*.read_permission"],
  rootKey: ["rootKeys.{rootKeyId}.read_root_key"],
} as const satisfies Record<Kind, readonly string[]>;

const SearchResult = z
  .strictObject({
    kind: z.enum(kinds),
    id: z.string(),
    name: z
      .string()
      .optional()
      .describe("Its name; of an identity the external id, of a permission the slug, of a webhook its name or URL."),
    isExact: z.boolean().describe("Whether the query is its id, its whole name or its key string."),
    apiId: z.string().optional().describe("Of a key: its API."),
    start: z.string().optional().describe("Of a key: the beginning of the key string."),
    externalId: z.string().optional().describe("Of a key: the external id of its identity."),
    createdAt: z.int().describe("Unix time in milliseconds."),
  })
  .meta({ id: "SearchResult", description: "An object that a search found." });
type Result = z.input<typeof SearchResult>;

export const search = query("system.search", {
  summary: "Search keys, identities, APIs and everything else",
  description:
    "Finds keys, identities, APIs, budgets, namespaces of rate limits, webhooks, roles, permissions and root keys of the " +
    "workspace, as far as the root key may read them. Each word of the query must occur in what an object is called: in its name, its " +
    "id, or the description of a role or permission; of a key also in its `start`, in the external id of its identity or, if " +
    "another word occurs in the key, in the name of its API. Words may be in any order; case does not matter, and no " +
    "character is a wildcard. Exact matches come first, then each kind with its newest objects first.\n\n" +
    "A key string or root key is looked up by its hash. It is neither stored nor logged, and one with a valid checksum is " +
    "not compared with anything else.\n\n" +
    `One call examines the newest ${SEARCH_EXAMINED_MAX.toLocaleString("en")} keys and identities, the keys divided among ` +
    `the APIs, and the newest ${SEARCH_OTHERS_EXAMINED_MAX.toLocaleString("en")} objects of each other kind. Of more than ` +
    `${SEARCH_WORDS_MAX} words it compares the longest. An id, an external id, a whole name and a key string are found ` +
    "whatever their age. `apis.listKeys` searches all keys of an API, page by page.",
  permissions: [...new Set(Object.values(reading).flat())],
  input: z.strictObject({
    query: asSecret(text(0, 512)).describe("Words, an id or a key string. Blank: no results."),
    limit: integer(1, 50).default(5).describe("Maximum number of results of each kind, exact matches not counted."),
  }),
  output: z.strictObject({
    results: z.array(SearchResult),
    isComplete: z.boolean().describe("Whether everything was examined. If not, older objects may match too."),
  }),
  problems: [],
  examples: [
    {
      summary: "Find a key by its owner and its name",
      input: { query: "production acme" },
      output: {
        results: [
          {
            kind: "key",
            id: exampleKey.keyId,
            name: exampleKey.name,
            isExact: false,
            apiId: exampleKey.apiId,
            start: exampleKey.start,
            externalId: exampleKey.identity.externalId,
            createdAt: exampleTime,
          },
        ],
        isComplete: true,
      },
    },
    {
      summary: "A key string that does not exist",
      input: { query: exampleSecret.replace("prod", "test") },
      output: { results: [], isComplete: true },
    },
  ],
}).handle(async ({ query, limit }, context) => {
  context.principal.authorizeSome(Object.values(reading).flat());
  const wanted = query.trim();
  if (wanted === "") return { results: [], isComplete: true };
  const ofString = await findByKeyString(wanted, context);
  // A key string must not be a parameter of other statements, which a database can log.
  if (ofString || isKeyString(wanted)) return { results: ofString ? [ofString] : [], isComplete: true };
  const exact = await findExactly(wanted, context);
  if (exact.some(({ id }) => id === wanted)) return { results: exact, isComplete: true };
  const matching = await findMatching(wordsOf(wanted), limit, context);
  const known = new Set(exact.map(({ id }) => id));
  return {
    results: [...exact, ...matching.results.filter(({ id }) => !known.has(id))],
    isComplete: matching.isComplete,
  };
});

type Context = QueryContext<never>;

function isKeyString(text: string): boolean {
  return isOwnSecret(text) || hasValidChecksum(text);
}

/** The words to compare, folded, the longest first, because it rejects the most. A part of another word says nothing. */
function wordsOf(text: string): string[] {
  const words = [...new Set(fold(text).split(/\s+/))].sort((a, b) => b.length - a.length);
  const different = words.filter((word, index) => !words.slice(0, index).some((longer) => longer.includes(word)));
  return different.slice(0, SEARCH_WORDS_MAX);
}

async function findByKeyString(secret: string, { store, principal }: Context): Promise<Result | undefined> {
  const search = store.of(SearchReader);
  const hash = hashSecret(secret);
  const key = await store.of(KeyReader).findByHashes([hash, hashSecret512(secret)]);
  if (key && mayRead(principal, "key", key.api_id)) {
    return keyResult({ ...key, external_id: key.identity?.external_id ?? null }, true);
  }
  const rootKey = await search.rootKeyByHash(hash);
  return rootKey && mayRead(principal, "rootKey", rootKey.id) ? result("rootKey", rootKey, true) : undefined;
}

/** The objects with this id or whole name. */
async function findExactly(wanted: string, { store, principal }: Context): Promise<Result[]> {
  const search = store.of(SearchReader);
  const found: Result[] = [];
  const [key] = await search.keys([wanted]);
  if (key && mayRead(principal, "key", key.api_id)) found.push(keyResult(key, true));
  for (const kind of searchedKinds) {
    const row = await search.exact(kind, wanted);
    if (row && mayRead(principal, kind, row.id)) found.push(result(kind, row, true));
  }
  const webhook = await store.of(WebhookReader).find(wanted);
  if (webhook && mayRead(principal, "webhook", webhook.id)) found.push(webhookResult(webhook, true));
  return inOrder(found);
}

/** The newest objects of each kind in which all words occur. */
async function findMatching(words: readonly string[], limit: number, { store, principal }: Context) {
  const search = store.of(SearchReader);
  const found: Result[] = [];
  let isComplete = true;
  for (const kind of searchedKinds) {
    if (!reading[kind].every((permission) => principal.maySome(permission))) continue;
    const matching = await search.matching(kind, words);
    const readable = matching.rows.filter(({ id }) => mayRead(principal, kind, id));
    found.push(...readable.slice(0, limit).map((row) => result(kind, row, false)));
    isComplete &&= matching.isComplete;
  }
  const apis = await search.newestApis();
  const readable = apis.rows
    .filter(({ id }) => mayRead(principal, "key", id))
    .map(({ id, name_folded }) => ({ id, named: namedBy(name_folded, words) }));
  if (readable.length > 0) {
    const keys = await search.matchingKeys(readable, words, limit);
    found.push(...keys.rows.map((row) => keyResult(row, false)));
    isComplete &&= keys.isComplete && apis.isComplete;
  }
  const webhooks = await store.of(WebhookReader).page({ from: undefined, limit: WEBHOOKS_PER_WORKSPACE_MAX });
  const matching = webhooks.filter(
    ({ id, name, url }) =>
      mayRead(principal, "webhook", id) && words.every((word) => fold(`${name ?? ""} ${url} ${id}`).includes(word)),
  );
  found.push(
    ...matching
      .toReversed()
      .slice(0, limit)
      .map((row) => webhookResult(row, false)),
  );
  return { results: inOrder(found), isComplete };
}

/** Which words the name of an API has. None, if it has all: then the name of a key must have one. */
function namedBy(name: string, words: readonly string[]): boolean[] {
  const named = words.map((word) => name.includes(word));
  return named.every(Boolean) ? named.map(() => false) : named;
}

/** `id`: of the object, of a key that of its API. */
function mayRead(principal: Principal, kind: Kind, id: string): boolean {
  return reading[kind].every((permission) => principal.may(permission.replace(/\{\w+\}/, id)));
}

function result(kind: Kind, { id, name, created_at }: FoundRow, isExact: boolean): Result {
  return { kind, id, ...(name !== null && { name }), isExact, createdAt: created_at };
}

function keyResult(key: FoundKey, isExact: boolean): Result {
  const { api_id, start, external_id } = key;
  return {
    ...result("key", key, isExact),
    apiId: api_id,
    start,
    ...(external_id !== null && { externalId: external_id }),
  };
}

function webhookResult({ name, url, ...row }: WebhookRow, isExact: boolean): Result {
  return result("webhook", { ...row, name: name ?? url }, isExact);
}

function inOrder(found: readonly Result[]): Result[] {
  return found.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
}
