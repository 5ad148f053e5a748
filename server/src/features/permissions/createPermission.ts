import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { examplePermission } from "../../platform/vocabulary/examples.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { Description, Slug } from "./fields.ts";
import { PermissionWriter } from "./statements/permissions.ts";

export const createPermission = mutation("permissions.createPermission", {
  summary: "Create a permission",
  description:
    "Keys get permissions directly or through roles. Slugs are unique in the workspace, regardless of case. A " +
    "verification compares slugs exactly.",
  idempotent: true,
  permissions: ["permissions.*.create_permission"],
  input: z.strictObject({
    name: text(1, 512).describe("A label. Several permissions may have the same name."),
    slug: Slug,
    description: Description.optional(),
  }),
  output: z.strictObject({ permissionId: z.string() }),
  problems: ["permission_already_exists"],
  examples: [
    {
      summary: "Create a permission",
      input: {
        name: examplePermission.name,
        slug: examplePermission.slug,
        description: examplePermission.description,
      },
      output: { permissionId: examplePermission.id },
    },
    {
      summary: "A slug that is taken",
      input: { name: "Read documents", slug: "Documents.Read" },
      problem: "permission_already_exists",
      detail: "A permission with the slug 'Documents.Read' already exists.",
    },
  ],
}).handle(async ({ name, slug, description }, { store, principal, random, now, invalidate, audit, fail }) => {
  principal.authorize("permissions.*.create_permission");
  const permission = { name, slug, description: description || null };
  const permissionId = await store.of(PermissionWriter).insert(permission, random, now);
  if (permissionId === undefined) {
    return fail("permission_already_exists", `A permission with the slug '${slug}' already exists.`);
  }
  invalidate.nothing("No key has the new permission.");
  audit([permissionId], { slug }, [
    { type: "permission.created", objectId: permissionId, data: { permissionId, slug } },
  ]);
  return { permissionId };
});
