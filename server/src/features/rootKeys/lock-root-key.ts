import type { MutationContext } from "../../platform/rpc/operation.ts";
import { grantsOf } from "../../platform/store/access/root-key-lookup.ts";
import type { RootKeyRow } from "../../platform/store/schema.ts";
import { RootKeyWriter } from "./statements.ts";

const FROM_ENVIRONMENT =
  "This root key comes from the service's configuration, which would revert the change at the next start. " +
  "Change LATCHKEY_ROOT_KEY instead.";

/**
 * Locks a root key for a change, and with it all root keys of the workspace. The call fails if the root key does not
 * exist, comes from the configuration, or has a permission that the calling root key lacks.
 */
export async function lockRootKey(
  rootKeyId: string,
  action: string,
  { store, principal, fail }: MutationContext<"root_key_not_found" | "protected_resource">,
): Promise<RootKeyRow> {
  const rootKey = await store.of(RootKeyWriter).findForUpdate(rootKeyId);
  if (!rootKey) return fail("root_key_not_found");
  principal.authorize(`rootKeys.${rootKeyId}.${action}`);
  principal.authorizeGrants(grantsOf(rootKey));
  if (rootKey.source === "environment") return fail("protected_resource", FROM_ENVIRONMENT);
  return rootKey;
}
