import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { grantsOf } from "../../platform/store/access/root-key-lookup.ts";
import { exampleRootKey } from "../../platform/vocabulary/examples.ts";
import { RootKeyId } from "../../platform/vocabulary/schema.ts";
import { lockRootKey } from "./lock-root-key.ts";
import { LAST_ADMINISTRATOR } from "./record.ts";
import { MADE_DELETED_MAX, RootKeyWriter } from "./statements.ts";

export const deleteRootKey = mutation("rootKeys.deleteRootKey", {
  summary: "Delete a root key",
  description:
    "The root key stops working at once. The calling root key must have every permission of the deleted ones. The last " +
    "administrator of a workspace and the root key of the service's configuration cannot be deleted. Root keys that the " +
    "deleted one created live on, unless `descendants` is true: after a leak, whoever had it may have created some. The " +
    "calling root key, that of the configuration and those that these created are never deleted as descendants, nor are " +
    "those of other workspaces.",
  narrowsAccess: true,
  permissions: ["rootKeys.{rootKeyId}.delete_root_key"],
  input: z.strictObject({
    rootKeyId: RootKeyId,
    descendants: z
      .boolean()
      .optional()
      .describe(
        "Whether to delete the root keys that it created too, and those that these created. A call deletes up to " +
          `${MADE_DELETED_MAX} of them, all or none; repeat it while \`deletedDescendants\` is ${MADE_DELETED_MAX}. It also works ` +
          "after the root key itself was deleted.",
      ),
  }),
  output: z.strictObject({
    deletedDescendants: z.int().describe("How many root keys that it created were deleted, directly or indirectly."),
    livingDescendants: z
      .int()
      .describe("How many root keys that it created, directly or indirectly, are not deleted, in all workspaces."),
  }),
  problems: ["root_key_not_found", "protected_resource"],
  examples: [
    {
      summary: "Delete a root key",
      input: { rootKeyId: exampleRootKey.rootKeyId },
      output: { deletedDescendants: 0, livingDescendants: 0 },
    },
    {
      summary: "A root key that does not exist",
      input: { rootKeyId: "rk_Vb4nYk0sUoQ2rTzE" },
      problem: "root_key_not_found",
    },
  ],
}).handle(async ({ rootKeyId, descendants = false }, context) => {
  const { store, principal, now, invalidate, audit, fail } = context;
  const rootKeys = store.of(RootKeyWriter);
  const before = descendants ? await rootKeys.findDeletedForUpdate(rootKeyId) : undefined;
  if (before) {
    principal.authorize(`rootKeys.${rootKeyId}.delete_root_key`);
    principal.authorizeGrants(grantsOf(before));
  }
  const rootKey = before ?? (await lockRootKey(rootKeyId, "delete_root_key", context));
  const made = await rootKeys.findMade(rootKeyId, principal.rootKeyId);
  const also = descendants ? made.deletable : [];
  // The call that would repeat a complete deletion finds nothing, as without descendants.
  if (before && also.length === 0) return fail("root_key_not_found");
  for (const { id, grants } of also) {
    principal.authorize(`rootKeys.${id}.delete_root_key`);
    principal.authorizeGrants(grantsOf({ grants }));
  }
  const deleted = before ? also : [rootKey, ...also];
  if (await rootKeys.hasNoAdministratorBeside(deleted)) return fail("protected_resource", LAST_ADMINISTRATOR);
  const ids = deleted.map(({ id }) => id);
  await rootKeys.markDeleted(ids, now);
  for (const id of ids) invalidate.rootKey(id);
  const livingDescendants = made.living - also.length;
  const counts = { deletedDescendants: also.length, livingDescendants };
  audit(
    ids,
    { name: rootKey.name, ...(descendants && { descendantsOf: rootKeyId, ...counts }) },
    deleted.map(({ id, name }) => ({ type: "root_key.deleted", objectId: id, data: { rootKeyId: id, name } })),
  );
  return counts;
});
