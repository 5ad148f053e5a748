import type { MutationContext } from "../../platform/rpc/operation.ts";
import { DerivedKeyWriter } from "./statements/derived-keys.ts";
import { KeyWriter } from "./statements/keys.ts";

/** Ends a derived key and what was derived of it; false if there is no such derived key. */
export async function endDerivedKey(
  keyId: string,
  { store, principal, now, invalidate, audit, fail }: MutationContext<"key_not_found">,
): Promise<boolean> {
  const keys = store.of(DerivedKeyWriter);
  const derived = await keys.find(keyId);
  if (!derived) return false;
  // Locked, so that nothing is derived of it meanwhile.
  const top = await store.of(KeyWriter).findForUpdate(derived.top_id);
  if (!top) return fail("key_not_found");
  principal.authorize(`apis.${top.api_id}.delete_key`);
  const ended = await keys.end(derived, now);
  if (ended === 0) return fail("key_not_found");
  invalidate.key(keyId);
  audit([...new Set([keyId, derived.parent_id, top.id, top.api_id])], { topKeyId: top.id, ended }, []);
  return true;
}
