import { z } from "zod";
import { ADMINISTRATOR } from "../../../../engine/src/rules/grants.ts";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleAdministratorId, exampleWorkspace, exampleWorkspaceInput } from "../../platform/vocabulary/examples.ts";
import { Name } from "../../platform/vocabulary/schema.ts";
import { IssuedOutput } from "../rootKeys/record.ts";
import { NOT_DEFAULT, RequestsPerMinute } from "./record.ts";
import { AdministrationWriter } from "./statements.ts";

export const createWorkspace = mutation("workspaces.createWorkspace", {
  summary: "Create a workspace and its administrator root key",
  description:
    "Workspaces are isolated: for a root key, the resources of other workspaces do not exist. Requires a root key of the " +
    "default workspace. Several workspaces may have the same name.",
  idempotent: true,
  issues: ({ rootKeyId }) => rootKeyId,
  permissions: ["workspaces.*.create_workspace"],
  input: z.strictObject({
    name: Name,
    requestsPerMinute: RequestsPerMinute.optional(),
  }),
  output: z.strictObject({ workspaceId: z.string(), ...IssuedOutput }),
  problems: [],
  examples: [
    {
      summary: "Create a workspace for a customer",
      input: exampleWorkspaceInput,
      output: {
        workspaceId: exampleWorkspace.workspaceId,
        rootKeyId: exampleAdministratorId,
        key: "lk_root_KVwnukSTyWo89FydYtydrayMfQrjEivcZ1zGqqG",
      },
    },
  ],
}).handle(async ({ name, requestsPerMinute = null }, context) => {
  const { store, principal, random, secrets, now, invalidate, audit, fail } = context;
  principal.authorize("workspaces.*.create_workspace");
  const workspaces = await store.of(AdministrationWriter).allWorkspaces();
  if (!workspaces) return fail("insufficient_permissions", NOT_DEFAULT);
  const workspaceId = await workspaces.create({ name, requestsPerMinute }, random, now);
  const administrator = {
    name: "administrator",
    grants: [ADMINISTRATOR],
    expiresAt: null,
    createdBy: principal.rootKeyId,
  };
  const { rootKeyId, key, hash } = await workspaces
    .rootKeysOf(workspaceId)
    .issue(administrator, { random, secrets }, now);
  invalidate.workspace(workspaceId);
  invalidate.rootKeyHash(hash);
  audit([workspaceId, rootKeyId], { name, ...(requestsPerMinute !== null && { requestsPerMinute }) }, [
    { type: "workspace.created", objectId: workspaceId, data: { workspaceId } },
  ]);
  return { workspaceId, rootKeyId, key };
});
