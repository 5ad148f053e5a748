import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleRootKey } from "../examples.ts";
import { Empty, RootKeyId } from "../schema.ts";
import { lockRootKey } from "./lock-root-key.ts";
import { LAST_ADMINISTRATOR } from "./record.ts";

export const deleteRootKey = mutation("rootKeys.deleteRootKey", {
  summary: "Delete a root key",
  description:
    "The root key stops working at once. The calling root key must have every permission of the deleted one. The last " +
    "administrator of a workspace and the root key of the service's configuration cannot be deleted.",
  narrowsAccess: true,
  permissions: ["rootKeys.{rootKeyId}.delete_root_key"],
  input: z.strictObject({ rootKeyId: RootKeyId }),
  output: Empty,
  problems: ["root_key_not_found", "protected_resource"],
  examples: [
    { summary: "Delete a root key", input: { rootKeyId: exampleRootKey.rootKeyId }, output: {} },
    {
      summary: "A root key that does not exist",
      input: { rootKeyId: "rk_Vb4nYk0sUoQ2rTzE" },
      problem: "root_key_not_found",
    },
  ],
}).handle(async ({ rootKeyId }, context) => {
  const { store, now, invalidate, audit, fail } = context;
  const rootKey = await lockRootKey(rootKeyId, "delete_root_key", context);
  if (await store.rootKeys.isLastAdministrator(rootKey)) return fail("protected_resource", LAST_ADMINISTRATOR);
  await store.rootKeys.markDeleted(rootKeyId, now);
  invalidate.rootKey(rootKeyId);
  const { name } = rootKey;
  audit([rootKeyId], { name }, [{ type: "root_key.deleted", objectId: rootKeyId, data: { rootKeyId, name } }]);
  return {};
});
