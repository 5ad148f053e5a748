import { z } from "zod";
import type { StoredPermission } from "../../store/permissions/permissions.ts";
import type { StoredRole } from "../../store/permissions/roles.ts";

export const PermissionOutput = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    slug: z.string().describe("What verifications ask for."),
    description: z.string().optional(),
  })
  .meta({ id: "Permission", description: "Something that a key may be allowed to do." });

export const RoleOutput = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    description: z.string().optional(),
    permissions: z.array(PermissionOutput).optional().describe("What it gives, in the order of the slugs."),
  })
  .meta({ id: "Role", description: "Permissions under one name. What has no value is left out." });

export function permissionRecord({ id, name, slug, description }: StoredPermission): z.input<typeof PermissionOutput> {
  return { id, name, slug, ...(description && { description }) };
}

export function roleRecord({ id, name, description, permissions }: StoredRole): z.input<typeof RoleOutput> {
  return {
    id,
    name,
    ...(description && { description }),
    ...(permissions.length > 0 && { permissions: permissions.map(permissionRecord) }),
  };
}
