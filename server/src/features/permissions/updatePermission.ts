import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { changedValues, updateEvents } from "../../platform/vocabulary/changed-values.ts";
import { type ColumnsFor, columnsOf } from "../../platform/vocabulary/columns.ts";
import { examplePermission } from "../../platform/vocabulary/examples.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { Description, PermissionReference, Slug } from "./fields.ts";
import { PermissionOutput, toPermissionOutput } from "./record.ts";
import { PermissionWriter } from "./statements/permissions.ts";

export const updatePermission = mutation("permissions.updatePermission", {
  summary: "Update a permission",
  description:
    "Omitted fields do not change. Keys and roles keep the permission under its new slug. The next verification on the " +
    "same node sees the change.",
  permissions: ["permissions.*.update_permission"],
  input: z.strictObject({
    permission: PermissionReference,
    name: text(1, 512).optional().describe("A label. Several permissions may have the same name."),
    slug: Slug.optional(),
    description: Description.nullish().describe("A description for you. Null or empty: none."),
  }),
  output: PermissionOutput,
  problems: ["permission_not_found", "permission_already_exists"],
  examples: [
    {
      summary: "Rename a permission",
      input: { permission: examplePermission.slug, name: "Erase documents" },
      output: { ...examplePermission, name: "Erase documents" },
    },
    {
      summary: "A slug that is taken",
      input: { permission: examplePermission.id, slug: "documents.read" },
      problem: "permission_already_exists",
      detail: "A permission with the slug 'documents.read' already exists.",
    },
    {
      summary: "A permission that does not exist",
      input: { permission: "documents.share", name: "Share documents" },
      problem: "permission_not_found",
    },
  ],
}).handle(async (input, { store, principal, random, now, invalidate, audit, fail }) => {
  principal.authorize("permissions.*.update_permission");
  const permissions = store.of(PermissionWriter);
  const permission = await permissions.find(input.permission);
  if (!permission) return fail("permission_not_found");
  const { permission: _, ...given } = input;
  const changes = columnsOf(given, {
    name: (name) => ({ name }),
    slug: (slug) => ({ slug }),
    description: (description) => ({ description: description || null }),
  } satisfies ColumnsFor<typeof given>);
  if (Object.keys(changes).length === 0) return toPermissionOutput(permission);
  const updated = await permissions.update(permission, changes, random, now);
  if (updated === "missing") return fail("permission_not_found");
  if (updated === "taken") {
    return fail("permission_already_exists", `A permission with the slug '${given.slug}' already exists.`);
  }
  // Any key of the workspace may have the permission.
  if (updated.slug !== permission.slug) invalidate.workspace(principal.workspaceId);
  else invalidate.nothing("Cached keys hold slugs only.");
  const differing = changedValues(changes, permission);
  const { id: permissionId, slug } = updated;
  audit(
    [permissionId],
    { ...given, former: permission.slug, ...differing },
    updateEvents("permission", permissionId, { permissionId, slug }, differing.after),
  );
  return toPermissionOutput(updated);
});
