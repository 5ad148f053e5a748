import { z } from "zod";
import { mutation } from "../../rpc/operation.ts";
import { isAdministrator } from "../../store/administration/root-keys.ts";
import { exampleRootKey } from "../examples.ts";
import { Empty, Expires, Name, RootKeyId } from "../schema.ts";
import { lockRootKey } from "./lock-root-key.ts";
import { canonical, LAST_ADMINISTRATOR, Permissions } from "./record.ts";

export const updateRootKey = mutation("rootKeys.updateRootKey", {
  summary: "Change a root key",
  description:
    "What is omitted stays as it is; permissions are replaced as a whole. The root key of the call needs every " +
    "permission that this one has or is to have. The last administrator of a workspace stays one, and a root key that " +
    "the service's configuration gives can be changed there only.",
  narrowsAccess: true,
  permissions: ["rootKeys.{rootKeyId}.update_root_key"],
  input: z.strictObject({
    rootKeyId: RootKeyId,
    name: Name.optional(),
    permissions: Permissions.optional(),
    enabled: z.boolean().optional().describe("Whether calls with it are answered."),
    expires: Expires.nullable().optional().describe("Unix time in milliseconds from which it is refused; null: never."),
  }),
  output: Empty,
  problems: ["root_key_not_found", "protected_resource"],
  examples: [
    {
      summary: "Other permissions",
      input: { rootKeyId: exampleRootKey.rootKeyId, permissions: ["apis.*.create_key", "apis.*.delete_key"] },
      output: {},
    },
    { summary: "Switch it off", input: { rootKeyId: exampleRootKey.rootKeyId, enabled: false }, output: {} },
    {
      summary: "A root key that is not there",
      input: { rootKeyId: "rk_Vb4nYk0sUoQ2rTzE", enabled: false },
      problem: "root_key_not_found",
    },
  ],
}).handle(async ({ rootKeyId, ...given }, context) => {
  const { store, principal, now, invalidate, audit, fail } = context;
  const rootKey = await lockRootKey(rootKeyId, "update_root_key", context);
  const { name, enabled, expires } = given;
  const permissions = given.permissions && canonical(given.permissions);
  principal.authorizeGrants(permissions ?? []);
  if (Object.keys(given).length === 0) return {};

  const values = {
    ...(name !== undefined && { name }),
    ...(permissions && { grants: JSON.stringify(permissions) }),
    ...(enabled !== undefined && { enabled: enabled ? (1 as const) : (0 as const) }),
    ...(expires !== undefined && { expires_at: expires }),
  };
  if (!isAdministrator({ ...rootKey, ...values }) && (await store.rootKeys.isLastAdministrator(rootKey))) {
    return fail("protected_resource", LAST_ADMINISTRATOR);
  }
  await store.rootKeys.update(rootKeyId, values, now);
  invalidate.rootKey(rootKeyId);
  audit([rootKeyId], { ...given, ...(permissions && { permissions }) });
  return {};
});
