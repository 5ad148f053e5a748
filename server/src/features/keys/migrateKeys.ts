import { z } from "zod";
import { constantTimeEqual } from "../../../../engine/src/crypto/hash.ts";
import { newId } from "../../../../engine/src/random/random.ts";
import { hashAlgorithms, hashVersions, isFoundByItself, readHash } from "../../../../engine/src/rules/imported-keys.ts";
import { type BulkContext, bulk } from "../../platform/rpc/operation.ts";
import { exampleKey } from "../../platform/vocabulary/examples.ts";
import { asSecret, text } from "../../platform/vocabulary/schema.ts";
import { policyOf } from "../apis/record.ts";
import { ApiWriter } from "../apis/statements.ts";
import { assignBudgets } from "../budgets/assign.ts";
import { AssignedBudget } from "../budgets/record.ts";
import { OLDER_PROGRAMS, refillError } from "../credits/record.ts";
import { BalanceWriter } from "../credits/statements/balances.ts";
import { acceptConcurrency } from "../holds/concurrency.ts";
import { choosePlans } from "../plans/assign.ts";
import { AssignedPlan } from "../plans/record.ts";
import { acceptShadow } from "../ratelimits/shadow.ts";
import { acceptAllowedIps } from "./allowed-ips.ts";
import { importedMembers, insertImported } from "./insert-imported.ts";
import { expiryFault, expiryOfNew, LIMIT_MISSING, PREFIX_UNKNOWN } from "./policy.ts";
import { VAULT_MISSING } from "./record.ts";
import { KeyMigrationWriter } from "./statements/key-migrations.ts";
import { KeyPolicyReader } from "./statements/key-policy.ts";
import { KeyWriter } from "./statements/keys.ts";

/** Keys that one transaction imports however long it takes, and at most: one event names all of them. */
const KEYS_PER_CHUNK_MIN = 20;
const KEYS_PER_CHUNK_MAX = 500;
/** Maximum number of rows that one transaction writes: one per key, permission, role, limit and plan. */
const ROWS_PER_CHUNK_MAX = 1_000;

/** Digests of 32 and 64 bytes in hex, base64 and base64url. The algorithm decides the length. */
const HASH_PATTERN = "^(?:[0-9a-fA-F]{64}|[0-9a-fA-F]{128}|[A-Za-z0-9+/_-]{43}=?|[A-Za-z0-9+/_-]{86}(?:==)?)$";

const KeyInput = z.strictObject({
  hash: text(3)
    .meta({ pattern: HASH_PATTERN })
    .describe("The hash of the key string as hex, base64 or base64url, in the length of the algorithm."),
  ...importedMembers,
  budgetId: AssignedBudget.optional(),
  plan: AssignedPlan.optional(),
});

type KeyInput = z.output<typeof KeyInput>;

export const migrateKeys = bulk("keys.migrateKeys", {
  summary: "Import keys from another system",
  description:
    "Imports hashes, never key strings. The first call with a `migrationId` creates the migration and fixes its " +
    "`algorithm`. Keys imported with `sha256` (the default) or `sha512` verify like any other key. Keys imported with " +
    "`hmac-sha256` verify only with the `migrationId`. Keys imported with `prefixed-api-key` need the `migrationId` for " +
    "their first verification only. `prefixed-api-key` is for tokens of the form `prefix_short_long`; send the SHA-256 " +
    "of the long part.\n\n" +
    "The status is 200 even if some keys could not be imported. `failed` lists their hashes: a key with the hash exists " +
    "already, or the hash occurs earlier in the list. The list is imported in chunks of " +
    `up to ${KEYS_PER_CHUNK_MAX} keys, sized so that each takes some milliseconds. Each chunk is imported ` +
    "completely or not at all. The keys must obey the `policy` of the API: a chunk with one that does not is not imported, nor are " +
    "those after it. `stopped` says why then. If the first chunk is refused, the call fails.",
  permissions: ["apis.{apiId}.create_key", "budgets.{budgetId}.assign_budget", "plans.{planId}.assign_plan"],
  input: z
    .strictObject({
      migrationId: text(3, 255).describe("A name of your choice for the source of the keys."),
      apiId: text(3, 255).describe("Identifier of the API to import the keys into."),
      algorithm: z.enum(hashAlgorithms).default("sha256").describe("The algorithm of the hashes."),
      pepper: asSecret(text(1, 1_024))
        .optional()
        .describe("With `hmac-sha256`: the secret of the HMAC, stored encrypted. Required in the first call only."),
      pepperEncoding: z.enum(["utf8", "hex", "base64"]).default("utf8").describe("Encoding of `pepper`."),
      dryRun: z
        .boolean()
        .default(false)
        .describe("Whether to import nothing. `migrated` is empty then, and `failed` has the hashes that would fail."),
      keys: z.array(KeyInput).min(1),
    })
    .check(({ value: { algorithm, pepper, pepperEncoding, keys }, issues }) => {
      const reject = (message: string, ...path: (string | number)[]) =>
        issues.push({
          code: "custom",
          input: undefined,
          path,
          message,
          params: { fix: "See the description of the property." },
        });
      if (pepper !== undefined && algorithm !== "hmac-sha256") reject("belongs to hmac-sha256 only", "pepper");
      if (pepper !== undefined && pepperBytes(pepper, pepperEncoding) === undefined) {
        reject(`is not written as ${pepperEncoding}`, "pepper");
      }
      for (const [i, { hash, credits }] of keys.entries()) {
        if (readHash(hash, algorithm) === undefined) reject(`is no hash of ${algorithm}`, "keys", i, "hash");
        const refill = refillError(credits?.refill, credits?.remaining === null);
        if (refill) reject(`cannot be: ${refill}`, "keys", i, "credits", "refill");
      }
    }),
  output: z.strictObject({
    migrated: z
      .array(z.strictObject({ hash: z.string(), keyId: z.string() }))
      .describe("The hashes as sent, with the ids of the new keys."),
    failed: z.array(z.string()).describe("Hashes that were not imported."),
    stopped: z
      .strictObject({
        count: z
          .int()
          .describe(
            "How many hashes at the end of `failed` were not imported for this reason. Those before them exist.",
          ),
        status: z.int().describe("The status that a call with these keys alone would have."),
        title: z.string(),
        type: z.string().describe("The page about the problem, with its causes and remedies."),
        detail: z.string().describe("The reason. It names the key, if one of them is the reason."),
      })
      .optional()
      .describe(
        "Why the import ended before its end. Correct what `detail` names, or wait if `status` is 503, and send the last " +
          "`count` keys of the list again.",
      ),
  }),
  problems: ["api_not_found", "budget_not_found", "plan_not_found", "precondition_failed"],
  examples: [
    {
      summary: "Import keys by their SHA-256",
      input: {
        migrationId: "from-our-own-table",
        apiId: exampleKey.apiId,
        keys: [
          {
            hash: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
            name: "Initech, production",
            externalId: "initech",
            permissions: ["documents.read"],
          },
          { hash: "LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=" },
        ],
      },
      output: {
        migrated: [
          {
            hash: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
            keyId: "key_Bq3wZ7nLmT5xYc1R",
          },
        ],
        failed: ["LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564="],
      },
    },
    {
      summary: "An API that does not exist",
      input: {
        migrationId: "from-our-own-table",
        apiId: "api_IXIyFsB89IXl4uYc",
        keys: [{ hash: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" }],
      },
      problem: "api_not_found",
    },
  ],
}).handle({
  list: "keys",

  *split(input, size) {
    let keys: KeyInput[] = [];
    let hashes = 0;
    let rows = 0;
    for (const together of keysOfChunks(input)) {
      const added = together.reduce((sum, key) => sum + rowsOf(key), 0);
      const rowsMax = hashes < KEYS_PER_CHUNK_MIN ? ROWS_PER_CHUNK_MAX : Math.min(size(), ROWS_PER_CHUNK_MAX);
      if (hashes === KEYS_PER_CHUNK_MAX || (hashes > 0 && rows + added > rowsMax)) {
        yield { input: { ...input, keys }, rows };
        keys = [];
        hashes = 0;
        rows = 0;
      }
      for (const key of together) keys.push(key);
      hashes++;
      rows += added;
    }
    yield { input: { ...input, keys }, rows };
  },

  join(outputs, remaining, reason) {
    const left = remaining.flatMap(({ keys }) => keys.map(({ hash }) => hash));
    return {
      migrated: outputs.flatMap(({ migrated }) => migrated),
      failed: [...outputs.flatMap(({ failed }) => failed), ...left],
      ...(reason && { stopped: { count: left.length, ...reason } }),
    };
  },

  async handle(input, context) {
    const { store, principal, now, invalidate, audit, fail } = context;
    principal.authorize(`apis.${input.apiId}.create_key`);
    const api = await store.of(ApiWriter).find(input.apiId);
    if (!api) return fail("api_not_found");
    const policy = policyOf(api);
    if (policy.prefixFixed) return fail("invalid_input", PREFIX_UNKNOWN);
    for (const key of input.keys) {
      const fault = expiryFault(policy, expiryOfNew(policy, key.expires, now), now);
      if (fault !== undefined) return fail("invalid_input", `The key with the hash '${key.hash}': ${fault}`);
    }
    await assignBudgets(
      input.keys.map(({ budgetId }) => ({ former: null, next: budgetId ?? null })),
      context,
    );
    const plans = await choosePlans(
      "key",
      input.keys.flatMap(({ plan }) => plan ?? []),
      context,
    );
    const migration = await ensureMigration(input, context);

    const hashed = input.keys.map((key) => ({ key, hash: readHash(key.hash, input.algorithm)! }));
    const existing = await store.of(KeyWriter).findExistingHashes([...new Set(hashed.map(({ hash }) => hash))]);
    const failed: string[] = [];
    const fresh: typeof hashed = [];
    for (const entry of hashed) {
      if (existing.has(entry.hash)) failed.push(entry.key.hash);
      else fresh.push(entry);
      existing.add(entry.hash);
    }
    if (input.dryRun) return { migrated: [], failed };
    const refills = fresh.map(({ key }) => key.credits?.refill);
    if (!(await store.of(BalanceWriter).accepts(refills))) return fail("precondition_failed", OLDER_PROGRAMS);
    await acceptConcurrency(
      fresh.flatMap(({ key }) => key.concurrency ?? []),
      context,
    );
    await acceptShadow(
      fresh.flatMap(({ key }) => key.ratelimits ?? []),
      context,
    );
    await acceptAllowedIps(
      fresh.flatMap(({ key }) => key.allowedIps ?? []),
      context,
    );

    const plan = {
      apiId: api.id,
      policy,
      hashVersion: hashVersions[input.algorithm],
      migrationId: isFoundByItself(input.algorithm) ? null : migration.id,
      // Only the hashes are known.
      startOf: () => "",
      budgetOf: (key: KeyInput) => key.budgetId ?? null,
      planOf: ({ plan }: KeyInput) => (plan === undefined ? null : (plans.get(plan)?.id ?? null)),
    };
    const migrated: { hash: string; keyId: string }[] = [];
    for (const { key, keyId } of await insertImported(fresh, plan, context)) {
      if (keyId === null) failed.push(key.hash);
      else migrated.push({ hash: key.hash, keyId });
    }
    if (policy.limitsRequired) {
      const unlimited = new Set(await store.of(KeyPolicyReader).unlimited(migrated.map(({ keyId }) => keyId)));
      const first = migrated.find(({ keyId }) => unlimited.has(keyId));
      if (first) return fail("invalid_input", `The key with the hash '${first.hash}': ${LIMIT_MISSING}`);
    }

    // Also without a key: the migration may be new, and so may identities, roles and permissions.
    if (fresh.length > 0 || migration.isNew) {
      invalidate.imports();
      // Cached workspace records say that every key of the workspace ends in a checksum. Imported keys do not.
      if (migrated.length > 0 && (await store.of(KeyMigrationWriter).recordImport(now))) {
        invalidate.workspace(principal.workspaceId);
      }
      const { migrationId, algorithm } = input;
      const migratedIds = migrated.map(({ keyId }) => keyId);
      audit(
        [api.id, ...migratedIds],
        { migrationId, algorithm, keys: migrated.length },
        migrated.length === 0
          ? []
          : [{ type: "keys.imported", objectId: api.id, data: { apiId: api.id, migrationId, keyIds: migratedIds } }],
      );
    }
    return { migrated, failed };
  },
});

type Input = z.output<typeof migrateKeys.declaration.input>;

/** The keys that are in one chunk. A dry run stores nothing that later chunks would find, so it keeps equal hashes together. */
function keysOfChunks({ dryRun, algorithm, keys }: Input): Iterable<readonly KeyInput[]> {
  return dryRun ? Map.groupBy(keys, ({ hash }) => readHash(hash, algorithm)).values() : keys.map((key) => [key]);
}

function rowsOf({ roles = [], permissions = [], ratelimits: limits = [], concurrency = [], plan }: KeyInput): number {
  return (plan === undefined ? 1 : 2) + roles.length + permissions.length + limits.length + concurrency.length;
}

/** The migration of this name, created if it does not exist and this is no dry run. Its algorithm and its pepper never change. */
async function ensureMigration(
  { migrationId: name, algorithm, pepper, pepperEncoding, dryRun }: Input,
  { store, vault, principal, random, now, invalidate, fail }: BulkContext<"precondition_failed">,
): Promise<{ id: string; isNew: boolean }> {
  const pepperGiven = pepper === undefined ? undefined : pepperBytes(pepper, pepperEncoding)!;
  if (algorithm === "hmac-sha256" && !vault.isOpen) return fail("precondition_failed", VAULT_MISSING);
  const keyMigrations = store.of(KeyMigrationWriter);
  const existing = await keyMigrations.find(name);
  if (!existing) {
    if (algorithm === "hmac-sha256" && !pepperGiven) {
      return fail("invalid_input", "The first import of a migration with hmac-sha256 needs its pepper.");
    }
    const id = newId(random, "mig");
    if (dryRun) return { id, isNew: true };
    const sealed = pepperGiven ? await vault.sealPepper(id, pepperGiven) : null;
    if (await keyMigrations.insert({ id, name, algorithm, pepper: sealed, created_at: now })) {
      invalidate.migration(name);
      // Cached workspace records say whether keys are looked up by SHA-512.
      if (algorithm === "sha512") invalidate.workspace(principal.workspaceId);
      return { id, isNew: true };
    }
  }
  const migration = existing ?? (await keyMigrations.find(name))!;
  if (migration.algorithm !== algorithm) {
    return fail(
      "invalid_input",
      `The migration '${name}' holds hashes of ${migration.algorithm}, not of ${algorithm}.`,
    );
  }
  if (pepperGiven && !constantTimeEqual(await vault.openPepper(migration.id, migration.pepper!), pepperGiven)) {
    return fail("invalid_input", `The migration '${name}' was begun with another pepper.`);
  }
  return { id: migration.id, isNew: false };
}

/** The bytes of a pepper; undefined if it is not valid in the encoding. */
function pepperBytes(pepper: string, encoding: "utf8" | "hex" | "base64"): Buffer | undefined {
  const bytes = Buffer.from(pepper, encoding);
  const written = encoding === "hex" ? pepper.toLowerCase() : pepper;
  return bytes.length > 0 && bytes.toString(encoding) === written ? bytes : undefined;
}
