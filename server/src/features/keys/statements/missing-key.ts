import type { QueryContext } from "../../../platform/rpc/operation.ts";
import type { DerivedKeyRow } from "../../../platform/store/schema.ts";
import { DerivedKeyReader } from "./derived-keys.ts";
import { KeyReader } from "./keys.ts";

/**
 * Fails for an id that no issued key has: with `key_not_found`, or, if it is that of a derived key of which the caller may know
 * with `action`, with what can be done instead.
 */
export async function rejectMissing(
  keyId: string,
  action: string,
  { store, principal, fail }: Pick<QueryContext<"key_not_found">, "store" | "principal" | "fail">,
): Promise<never> {
  const derived = await store.of(DerivedKeyReader).find(keyId);
  const top = derived && (await store.of(KeyReader).find(derived.top_id));
  if (!derived || !top) return fail("key_not_found");
  principal.authorize(`apis.${top.api_id}.${action}`);
  return fail("invalid_input", aboutDerived(derived));
}

function aboutDerived({ id, parent_id, top_id }: DerivedKeyRow): string {
  return (
    `${id} was derived from ${parent_id}. A derived key cannot be changed or read like other keys: ` +
    `keys.listDerivedKeys with the keyId ${top_id} lists it, keys.deleteKey ends it, and what it may do changes with ${top_id}.`
  );
}
