import { z } from "zod";
import { ratelimitRecord } from "../../../../engine/src/directory/records.ts";
import {
  IDENTITY_META_BYTES_MAX,
  meta,
  PERMISSIONS_PER_KEY_MAX,
  RatelimitOutput,
  ROLES_PER_KEY_MAX,
  ratelimits,
  slug,
  text,
} from "../../platform/vocabulary/schema.ts";
import type { StoredPlan } from "./statements/plans.ts";

const NAME_LENGTH_MAX = 64;

const NAME = {
  regex: /^[a-zA-Z0-9_.-]+$/,
  says: "may hold letters, digits, underscores, dots and hyphens",
};

export const PlanName = text(1, NAME_LENGTH_MAX, NAME)
  // Names do not begin like ids, so that a reference is one or the other. Not in the pattern: that would need a look-ahead, which
  // many readers of the reference do not have.
  .refine((name) => !name.startsWith("plan_"), { error: "must not begin with plan_, as ids do" })
  .describe(
    "The name by which keys and identities refer to the plan. Unique in the workspace. Never changes. Not `plan_…`.",
  );

export const PlanReference = text(1, 255, NAME).describe("The name of a plan, or its id.");

/** `plan` of a key or an identity. */
export const AssignedPlan = PlanReference.describe("The name of the plan, or its id. Needs `assign_plan` on it.");

/** The fields of a plan that can change. */
export const planFields = {
  ratelimits: ratelimits.describe(
    "Limits of each key with the plan, and of each identity with it, whose keys share them. A limit of the same name that a " +
      "key or an identity has itself takes its place there. `autoApply` is ignored for identities, as it is for their own limits.",
  ),
  permissions: z
    .array(slug(1, 128))
    .max(PERMISSIONS_PER_KEY_MAX)
    .describe("Slugs that keys with the plan have besides their own. Those that do not exist yet are created."),
  roles: z
    .array(text(1, 128))
    .max(ROLES_PER_KEY_MAX)
    .describe("Names of existing roles that keys with the plan have besides their own."),
  meta: meta(IDENTITY_META_BYTES_MAX),
};

export const PlanOutput = z
  .strictObject({
    planId: z.string(),
    name: z.string(),
    ratelimits: z.array(RatelimitOutput).describe("In the order of their names."),
    permissions: z.array(z.string()).describe("Without those of its roles."),
    roles: z.array(z.string()),
    meta: z.record(z.string(), z.unknown()).optional(),
    version: z.int().describe("1 for a new plan. Each change adds 1."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    updatedAt: z.int().optional(),
  })
  .meta({
    id: "Plan",
    description: "What many keys and identities get from one place. Fields without a value are omitted.",
  });

/** A plan as the API returns it. */
export function toPlanOutput(plan: StoredPlan): z.input<typeof PlanOutput> {
  return {
    planId: plan.id,
    name: plan.name,
    ratelimits: plan.ratelimits.map(ratelimitRecord),
    permissions: [...plan.permissions],
    roles: [...plan.roles],
    ...(plan.meta !== null && { meta: JSON.parse(plan.meta) }),
    version: plan.version,
    createdAt: plan.created_at,
    ...(plan.updated_at !== null && { updatedAt: plan.updated_at }),
  };
}

/** Why plans cannot be stored. */
export const OLDER_PROGRAMS =
  "Another node runs an earlier release, which would not apply plans, or is starting. " +
  "Upgrade every node, then send the request again.";
