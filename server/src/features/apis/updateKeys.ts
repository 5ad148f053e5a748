import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { changedValues } from "../../platform/vocabulary/changed-values.ts";
import { CREDITS_MAX, Expires, integer, KeyAllowedIps } from "../../platform/vocabulary/schema.ts";
import { addPermissions } from "../keys/addPermissions.ts";
import { addRoles } from "../keys/addRoles.ts";
import { KeyPermissions, KeyRoles } from "../keys/permissions-and-roles.ts";
import { updateCredits } from "../keys/updateCredits.ts";
import { updateKey } from "../keys/updateKey.ts";
import { AssignedPlan } from "../plans/record.ts";
import {
  changeMatching,
  exampleSelection,
  IN_STEPS,
  MatchingKeysOutput,
  matchingKeysInput,
  missingApi,
} from "./matching-keys.ts";

const NAME = "apis.updateKeys";

export const updateKeys = mutation("apis.updateKeys", {
  summary: "Update the keys of an API that match",
  description: `Changes keys as \`keys.updateKey\`, \`keys.addRoles\`, \`keys.addPermissions\` and \`keys.updateCredits\` do. ${IN_STEPS}`,
  idempotent: true,
  permissions: [
    "apis.{apiId}.update_key",
    "apis.{apiId}.read_key",
    "apis.{apiId}.read_api",
    "permissions.*.add_role_to_key",
    "permissions.*.add_permission_to_key",
    "permissions.*.create_permission",
    "plans.{planId}.assign_plan",
  ],
  input: z.strictObject({
    ...matchingKeysInput(NAME),
    enabled: z.boolean().optional(),
    expires: Expires.nullish().describe("Null: the keys never expire."),
    allowedIps: KeyAllowedIps.nullish().describe(
      "IPv4 and IPv6 addresses and CIDRs that may use the keys. Null: every address that the API allows.",
    ),
    setPlan: AssignedPlan.nullish().describe(
      "The name of their plan, or its id. Null: none. Needs `assign_plan` on the former plans and on the new one.",
    ),
    addRoles: KeyRoles.min(1).optional().describe("Names of existing roles."),
    addPermissions: KeyPermissions.min(1).optional().describe("Slugs. New ones are created."),
    addCredits: integer(1, CREDITS_MAX)
      .optional()
      .describe(
        "Added to each balance: keys that share one after a reroll get it once, with the newest of them that matches. Keys with " +
          "unlimited credits fail.",
      ),
  }),
  output: MatchingKeysOutput,
  problems: ["api_not_found", "plan_not_found", "role_not_found"],
  examples: [
    {
      summary: "Disable the keys of one owner",
      input: { ...exampleSelection, enabled: false },
      output: { changed: 0, failed: [] },
    },
    { ...missingApi, input: { ...missingApi.input, enabled: false } },
  ],
}).handle(
  async (
    { enabled, expires, allowedIps, setPlan, addRoles: roles, addPermissions: permissions, addCredits, ...selection },
    context,
  ) => {
    const given = { enabled, expires, allowedIps, setPlan, addRoles: roles, addPermissions: permissions, addCredits };
    const values = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    if (Object.keys(values).length !== 1) {
      return context.fail(
        "invalid_input",
        "Send exactly one of `enabled`, `expires`, `allowedIps`, `setPlan`, `addRoles`, `addPermissions` and `addCredits`.",
      );
    }
    return changeMatching(NAME, selection, context, {
      permission: "update_key",
      values,
      grantsPerKey: roles?.length ?? permissions?.length ?? 0,
      oncePerPool: addCredits !== undefined || setPlan !== undefined,
      apply: async (key, own) => {
        const keyId = key.id;
        if (roles) return addRoles.handle({ keyId, roles }, own);
        if (permissions) return addPermissions.handle({ keyId, permissions }, own);
        if (setPlan !== undefined) {
          const hasPlan = setPlan === (key.plan?.name ?? null) || setPlan === key.plan?.id;
          return hasPlan ? undefined : updateKey.handle({ keyId, plan: setPlan }, own);
        }
        if (addCredits) return updateCredits.handle({ keyId, operation: "increment", value: addCredits }, own);
        const differing = changedValues(
          { enabled, expires, allowedIps },
          {
            enabled: key.enabled === 1,
            expires: key.expires_at,
            allowedIps: key.allowed_ips && JSON.parse(key.allowed_ips),
          },
        );
        return differing.after && updateKey.handle({ keyId, ...values }, own);
      },
    });
  },
);
