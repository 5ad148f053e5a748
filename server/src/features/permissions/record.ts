import { z } from "zod";
import type { StoredPermission } from "./statements/permissions.ts";
import type { StoredRole } from "./statements/roles.ts";

export const PermissionOutput = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    slug: z.string().describe("The name that verifications use."),
    description: z.string().optional(),
  })
  .meta({ id: "Permission", description: "A permission that keys can have directly or through a role." });

export const PermissionsOutput = z.array(PermissionOutput);

export const RoleOutput = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    description: z.string().optional(),
    permissions: z.array(PermissionOutput).optional().describe("The permissions of the role, sorted by slug."),
  })
  .meta({ id: "Role", description: "A named set of permissions. Fields without a value are omitted." });

export const RolesOutput = z.array(RoleOutput);

export function toPermissionOutput({
  id,
  name,
  slug,
  description,
}: StoredPermission): z.input<typeof PermissionOutput> {
  return { id, name, slug, ...(description && { description }) };
}

export function toRoleOutput({ id, name, description, permissions }: StoredRole): z.input<typeof RoleOutput> {
  return {
    id,
    name,
    ...(description && { description }),
    ...(permissions.length > 0 && { permissions: permissions.map(toPermissionOutput) }),
  };
}
