import { z } from "zod";
import { slug, text } from "../schema.ts";

/** A role gives no more than a key can be given directly: verifications carry all of it. */
export const PERMISSIONS_PER_ROLE_MAX = 1_000;

export const Slug = slug(1, 128).describe("What verifications ask for. Capitals do not make it another one.");
export const PermissionReference = slug(1, 128).describe("The permission's id or its slug.");
export const RoleName = text(1, 128);
export const RoleReference = RoleName.describe("The role's id or its name.");
export const Description = text(0, 512).describe("For yourselves.");

export const RolePermissions = z
  .array(Slug)
  .max(PERMISSIONS_PER_ROLE_MAX)
  .describe("Slugs. Those that do not exist yet are created, with the slug as their name.");
