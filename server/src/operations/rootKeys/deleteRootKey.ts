import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { exampleRootKey } from "../examples.ts";
import { Empty, RootKeyId } from "../schema.ts";
import { lockRootKey } from "./lock-root-key.ts";
import { LAST_ADMINISTRATOR } from "./record.ts";

export const deleteRootKey = mutation("rootKeys.deleteRootKey", {
  summary: "Delete a root key",
  description:
    "It stops working at once. The root key of the call needs every permission that this one has. The last " +
    "administrator of a workspace stays, and so does a root key that the service's configuration gives.",
  narrowsAccess: true,
  permissions: ["rootKeys.{rootKeyId}.delete_root_key"],
  input: z.strictObject({ rootKeyId: RootKeyId }),
  output: Empty,
  problems: ["root_key_not_found", "protected_resource"],
  examples: [
    { summary: "Delete a root key", input: { rootKeyId: exampleRootKey.rootKeyId }, output: {} },
    {
      summary: "A root key that is not there",
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
  audit([rootKeyId], { name: rootKey.name });
  return {};
});
