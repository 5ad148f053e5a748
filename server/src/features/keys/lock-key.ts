import type { MutationContext } from "../../platform/rpc/operation.ts";
import { KeyWriter } from "./statements/keys.ts";
import { rejectMissing } from "./statements/missing-key.ts";
import type { StoredKey } from "./statements/stored-key.ts";

/** What the events of a key say of it. */
export function keyInEvents(key: Pick<StoredKey, "id" | "api_id" | "identity">) {
  const externalId = key.identity?.external_id;
  return { keyId: key.id, apiId: key.api_id, ...(externalId !== undefined && { externalId }) };
}

/**
 * Locks a key for a change. The call fails if the key does not exist, or if the root key may not perform `action` on the
 * keys of its API, or if it is a derived key, which cannot be changed.
 */
export async function lockKey(
  keyId: string,
  action: "create_key" | "update_key" | "delete_key",
  { store, principal, fail }: MutationContext<"key_not_found">,
): Promise<StoredKey> {
  const key = await store.of(KeyWriter).findForUpdate(keyId);
  if (!key) return rejectMissing(keyId, action, { store, principal, fail });
  principal.authorize(`apis.${key.api_id}.${action}`);
  return key;
}
