/** What the operations that change all keys of an API that match a filter share. */
import { z } from "zod";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import type { MutationContext } from "../../platform/rpc/operation.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { EventContent } from "../../platform/store/events/events.ts";
import { boundedValue } from "../../platform/vocabulary/changed-values.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import type { KeyFilter } from "../keys/statements/key-search.ts";
import { KeyWriter } from "../keys/statements/keys.ts";
import type { StoredKey } from "../keys/statements/stored-key.ts";
import { keyFilter, keyFilterInput } from "./key-filter.ts";
import { ApiReader } from "./statements.ts";

/** The input fields that select the keys of one call. */
export const matchingKeysInput = (operation: string) => ({
  apiId: text(1).describe("Identifier of the API."),
  ...keyFilterInput,
  ...pageInput(operation, 100),
  limit: pageInput(operation, 100).limit.describe("Maximum number of keys that one call processes."),
});

export const MatchingKeysOutput = z.strictObject({
  changed: z
    .int()
    .describe("Number of keys that changed. Those that had the value, the roles or the permissions are not counted."),
  failed: z
    .array(z.strictObject({ keyId: z.string(), detail: z.string() }))
    .describe("Keys that could not be changed. The others were."),
  cursor: z.string().optional().describe("Continues with the next keys. Absent: every key that matches was processed."),
});

/** How to change all of them. */
export const IN_STEPS =
  "One call processes up to `limit` of the keys that `apis.listKeys` lists with the same filters, the newest first, in one " +
  "transaction; fewer if they get more than 1,000 roles or permissions in all, or have more than 10,000 permissions. Repeat it " +
  "with `cursor` until the answer has none. Keys that are created meanwhile are not processed.";

/** Keys of an unknown API, for the examples. */
export const missingApi = {
  summary: "An API that does not exist",
  input: { apiId: "api_03yhWPSEYjF9lWCM" },
  problem: "api_not_found" as const,
};

/** The disabled keys of an API, for the examples. */
export const exampleSelection = { apiId: exampleApi.apiId, externalId: "nobody" } as const;

/** Roles or permissions that one call gives to keys. Every other write to the embedded database waits for them. */
const GRANTS_PER_CALL = 1_000;
/** Permissions of the keys of one call, which are read for each of its keys. */
const HELD_PER_CALL = 10_000;
/** Characters of the JSON of what one key got, in the audit log. 100 keys take up to 30 kB. */
const KEY_CHANGE_LENGTH_MAX = 200;

interface Selection extends KeyFilter {
  apiId: string;
  limit: number;
  cursor?: string | undefined;
}

type Context = MutationContext<
  "api_not_found" | "budget_not_found" | "plan_not_found" | "key_not_found" | "role_not_found" | "precondition_failed"
>;

/** A change of many keys. */
export interface KeysChange {
  /** What a root key needs for each of them, also if none matches: `update_key`. */
  readonly permission: "update_key" | "delete_key";
  /** What each key gets, for the audit log. */
  readonly values: Readonly<Record<string, unknown>>;
  /** How many roles or permissions each key gets. */
  readonly grantsPerKey: number;
  /** Whether it changes what the keys of a pool share. Of these only the newest is processed, whatever page it is on. */
  readonly oncePerPool: boolean;
  /** Runs the operation that changes one key; nothing if the key is as it should be. */
  apply(key: StoredKey, context: Context): Promise<unknown>;
}

/**
 * Changes each key of one page. What the operations that change one key would record is recorded as one entry of the audit
 * log. A key that refuses the change because of its state is reported.
 */
export async function changeMatching(
  operation: string,
  { apiId, limit, cursor, ...filter }: Selection,
  context: Context,
  { permission, values, grantsPerKey, oncePerPool, apply }: KeysChange,
): Promise<z.input<typeof MatchingKeysOutput>> {
  const { store, principal, now, fail } = context;
  const readable = principal.may(`apis.${apiId}.read_key`) && principal.may(`apis.${apiId}.read_api`);
  if (!(await store.of(ApiReader).find(apiId)) || !readable) return fail("api_not_found");
  const selection = { apiId, filter: keyFilter(filter), now };
  const from = placeOf(operation, cursor);
  const most = Math.min(limit, Math.max(1, Math.floor(GRANTS_PER_CALL / grantsPerKey)));
  const found = await store.of(KeyWriter).places(selection, { order: "desc", from, limit: most });
  let { next } = found;
  // A key whose node has a clock ahead may have been created later than `now`.
  const begunAt = from?.begunAt ?? instantAt(Math.max(now, found.places[0]?.at ?? 0));
  const keyIds = found.places.map(({ id }) => id);
  const newest = oncePerPool && new Set(await store.of(KeyWriter).newestOfPools(selection, keyIds, begunAt));
  const failed: { keyId: string; detail: string }[] = [];
  const changes: { keyId: string; change: unknown }[] = [];
  const events: EventContent[] = [];
  let held = 0;
  for (const place of found.places) {
    if (held >= HELD_PER_CALL) {
      next = place;
      break;
    }
    const keyId = place.id;
    if (newest && !newest.has(keyId)) continue;
    const key = await store.of(KeyWriter).find(keyId);
    if (!key) continue;
    held += key.permissions.length;
    try {
      await apply(key, {
        ...context,
        audit: (_, meta, ofKey) => {
          changes.push({ keyId, change: boundedValue(meta, KEY_CHANGE_LENGTH_MAX) });
          events.push(...ofKey);
        },
      });
    } catch (error) {
      // Deleted by another call meanwhile.
      if (error instanceof Problem && error.code === "key_not_found") continue;
      if (!(error instanceof Problem) || error.code !== "invalid_input") throw error;
      failed.push({ keyId, detail: error.message });
    }
  }
  if (changes.length + failed.length > 0) {
    context.invalidate.nothing("each change invalidates its key");
    context.audit(
      [apiId, ...changes.map(({ keyId }) => keyId)],
      { change: boundedValue(values), keys: changes.length, failed: failed.length, changes },
      events,
    );
  }
  principal.authorize(`apis.${apiId}.${permission}`);
  const page = pageUntil(operation, [], next && { ...next, begunAt });
  return { changed: changes.length, failed, ...(page.cursor !== undefined && { cursor: page.cursor }) };
}
