import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { grantsOf, isAdministrator } from "../../platform/store/access/root-key-lookup.ts";
import { changedValues, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { type ColumnsFor, columnsOf, flag } from "../../platform/vocabulary/columns.ts";
import { exampleRootKey } from "../../platform/vocabulary/examples.ts";
import { Empty, Expires, Name, RootKeyId } from "../../platform/vocabulary/schema.ts";
import { lockRootKey } from "./lock-root-key.ts";
import { canonicalGrants, LAST_ADMINISTRATOR, LeakActionInput, RootKeyPermissions } from "./record.ts";
import { RootKeyWriter } from "./statements.ts";

export const updateRootKey = mutation("rootKeys.updateRootKey", {
  summary: "Update a root key",
  description:
    "Omitted fields do not change. Permissions are replaced as a whole. The calling root key must have every permission " +
    "that this one has before and after the change. The last administrator of a workspace must remain one. The root key " +
    "of the service's configuration can only be changed there.",
  narrowsAccess: true,
  permissions: ["rootKeys.{rootKeyId}.update_root_key"],
  input: z.strictObject({
    rootKeyId: RootKeyId,
    name: Name.optional(),
    permissions: RootKeyPermissions.optional(),
    enabled: z.boolean().optional().describe("Whether the service accepts it."),
    expires: Expires.nullable().optional().describe("Unix time in milliseconds at which it expires. Null: never."),
    leakAction: LeakActionInput.optional(),
  }),
  output: Empty,
  problems: ["root_key_not_found", "protected_resource"],
  examples: [
    {
      summary: "Replace the permissions",
      input: { rootKeyId: exampleRootKey.rootKeyId, permissions: ["apis.*.create_key", "apis.*.delete_key"] },
      output: {},
    },
    { summary: "Disable a root key", input: { rootKeyId: exampleRootKey.rootKeyId, enabled: false }, output: {} },
    {
      summary: "A root key that does not exist",
      input: { rootKeyId: "rk_Vb4nYk0sUoQ2rTzE", enabled: false },
      problem: "root_key_not_found",
    },
  ],
}).handle(async ({ rootKeyId, ...given }, context) => {
  const { store, principal, now, invalidate, audit, fail } = context;
  const rootKey = await lockRootKey(rootKeyId, "update_root_key", context);
  const { name } = given;
  const permissions = given.permissions && canonicalGrants(given.permissions);
  principal.authorizeGrants(permissions ?? []);
  if (Object.keys(given).length === 0) return {};

  const values = columnsOf(given, {
    name: (label) => ({ name: label }),
    permissions: () => ({ grants: JSON.stringify(permissions) }),
    enabled: (isEnabled) => ({ enabled: flag(isEnabled) }),
    expires: (expires) => ({ expires_at: expires }),
    leakAction: (leakAction) => ({ leak_action: leakAction }),
  } satisfies ColumnsFor<typeof given>);
  const rootKeys = store.of(RootKeyWriter);
  if (!isAdministrator({ ...rootKey, ...values }) && (await rootKeys.hasNoAdministratorBeside([rootKey]))) {
    return fail("protected_resource", LAST_ADMINISTRATOR);
  }
  await rootKeys.update(rootKeyId, values, now);
  invalidate.rootKey(rootKeyId);
  const after = { ...given, ...(permissions && { permissions }) };
  const former = {
    name: rootKey.name,
    permissions: grantsOf(rootKey),
    enabled: rootKey.enabled === 1,
    expires: rootKey.expires_at,
    leakAction: rootKey.leak_action ?? "mark",
  };
  const differing = changedValues(after, former);
  const data = { rootKeyId, name: name ?? rootKey.name };
  audit([rootKeyId], { ...after, ...differing }, updateEvents("root_key", rootKeyId, data, differing.after));
  return {};
});
