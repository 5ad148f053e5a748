import type { MutationContext } from "../../rpc/operation.ts";
import { grantsOf } from "../../store/administration/root-keys.ts";
import type { RootKeyRow } from "../../store/schema.ts";

const FROM_ENVIRONMENT =
  "This root key is given by the service's configuration, which would undo the change at the next start. " +
  "Change it there: LATCHKEY_ROOT_KEY.";

/**
 * The root key that somebody wants to change, held so that nobody else changes one of the workspace meanwhile. Ends the
 * call unless there is one that the caller may act upon: that needs every permission that the root key has.
 */
export async function lockRootKey(
  rootKeyId: string,
  action: string,
  { store, principal, fail }: MutationContext<"root_key_not_found" | "protected_resource">,
): Promise<RootKeyRow> {
  const rootKey = await store.rootKeys.findForUpdate(rootKeyId);
  if (!rootKey) return fail("root_key_not_found");
  principal.authorize(`rootKeys.${rootKeyId}.${action}`);
  principal.authorizeGrants(grantsOf(rootKey));
  if (rootKey.source === "environment") return fail("protected_resource", FROM_ENVIRONMENT);
  return rootKey;
}
