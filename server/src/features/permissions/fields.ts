import { z } from "zod";
import { slug, text } from "../../platform/vocabulary/schema.ts";

/** The same bound as for the direct permissions of a key, because verifications return all permissions. */
export const PERMISSIONS_PER_ROLE_MAX = 1_000;

export const Slug = slug(1, 128).describe(
  "The name that verifications use. Unique in the workspace, regardless of case.",
);
export const PermissionReference = slug(1, 128).describe("The permission's id or its slug.");
export const RoleName = text(1, 128);
export const RoleReference = RoleName.describe("The role's id or its name.");
export const Description = text(0, 512).describe("A description for you. Verifications do not return it.");

export const RolePermissions = z
  .array(Slug)
  .max(PERMISSIONS_PER_ROLE_MAX)
  .describe("Slugs. Permissions that do not exist yet are created, with the slug as their name.");
