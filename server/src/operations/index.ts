import type { Operation } from "../rpc/operation.ts";
import { getApiStats } from "./analytics/getApiStats.ts";
import { getIdentityStats } from "./analytics/getIdentityStats.ts";
import { getKeyStats } from "./analytics/getKeyStats.ts";
import { getRatelimitStats } from "./analytics/getRatelimitStats.ts";
import { createApi } from "./apis/createApi.ts";
import { deleteApi } from "./apis/deleteApi.ts";
import { getApi } from "./apis/getApi.ts";
import { listApis } from "./apis/listApis.ts";
import { listKeys } from "./apis/listKeys.ts";
import { updateApi } from "./apis/updateApi.ts";
import { listEvents } from "./audit/listEvents.ts";
import { createIdentity } from "./identities/createIdentity.ts";
import { deleteIdentity } from "./identities/deleteIdentity.ts";
import { getIdentity } from "./identities/getIdentity.ts";
import { listIdentities } from "./identities/listIdentities.ts";
import { updateIdentity } from "./identities/updateIdentity.ts";
import { addPermissions } from "./keys/addPermissions.ts";
import { addRoles } from "./keys/addRoles.ts";
import { createKey } from "./keys/createKey.ts";
import { deleteKey } from "./keys/deleteKey.ts";
import { getKey } from "./keys/getKey.ts";
import { migrateKeys } from "./keys/migrateKeys.ts";
import { removePermissions } from "./keys/removePermissions.ts";
import { removeRoles } from "./keys/removeRoles.ts";
import { rerollKey } from "./keys/rerollKey.ts";
import { setPermissions } from "./keys/setPermissions.ts";
import { setRoles } from "./keys/setRoles.ts";
import { updateCredits } from "./keys/updateCredits.ts";
import { updateKey } from "./keys/updateKey.ts";
import { verifyKey } from "./keys/verifyKey.ts";
import { whoami } from "./keys/whoami.ts";
import { createPermission } from "./permissions/createPermission.ts";
import { createRole } from "./permissions/createRole.ts";
import { deletePermission } from "./permissions/deletePermission.ts";
import { deleteRole } from "./permissions/deleteRole.ts";
import { getPermission } from "./permissions/getPermission.ts";
import { getRole } from "./permissions/getRole.ts";
import { listPermissions } from "./permissions/listPermissions.ts";
import { listRoles } from "./permissions/listRoles.ts";
import { setRolePermissions } from "./permissions/setRolePermissions.ts";
import { updatePermission } from "./permissions/updatePermission.ts";
import { updateRole } from "./permissions/updateRole.ts";
import { deleteNamespace } from "./ratelimits/deleteNamespace.ts";
import { deleteOverride } from "./ratelimits/deleteOverride.ts";
import { getOverride } from "./ratelimits/getOverride.ts";
import { limit } from "./ratelimits/limit.ts";
import { listNamespaces } from "./ratelimits/listNamespaces.ts";
import { listOverrides } from "./ratelimits/listOverrides.ts";
import { multiLimit } from "./ratelimits/multiLimit.ts";
import { setOverride } from "./ratelimits/setOverride.ts";
import { createRootKey } from "./rootKeys/createRootKey.ts";
import { deleteRootKey } from "./rootKeys/deleteRootKey.ts";
import { listRootKeys } from "./rootKeys/listRootKeys.ts";
import { rerollRootKey } from "./rootKeys/rerollRootKey.ts";
import { updateRootKey } from "./rootKeys/updateRootKey.ts";
import { createWorkspace } from "./workspaces/createWorkspace.ts";
import { listWorkspaces } from "./workspaces/listWorkspaces.ts";
import { updateWorkspace } from "./workspaces/updateWorkspace.ts";

/** What the operations of each namespace are about. */
export const namespaces: Readonly<Record<string, string>> = {
  apis: "An API is a namespace of keys.",
  keys: "What you hand out to your users, and verify when they come back with it.",
  identities: "A user, or whatever else owns keys. Its keys share its limits.",
  analytics: "What was verified and what was limited, counted.",
  permissions: "What keys may do, and roles that gather it under one name.",
  ratelimits: "Limits for anything, with or without keys.",
  rootKeys: "What programs call this service with.",
  workspaces: "Tenants of the service, which know nothing of each other. The default workspace manages them.",
  audit: "Who did what.",
};

/** Every operation there is, in the order of the reference. */
export const operations: readonly Operation[] = [
  createApi,
  deleteApi,
  getApi,
  listApis,
  listKeys,
  updateApi,
  addPermissions,
  addRoles,
  createKey,
  deleteKey,
  getKey,
  migrateKeys,
  removePermissions,
  removeRoles,
  rerollKey,
  setPermissions,
  setRoles,
  updateCredits,
  updateKey,
  verifyKey,
  whoami,
  createIdentity,
  deleteIdentity,
  getIdentity,
  listIdentities,
  updateIdentity,
  createPermission,
  createRole,
  deletePermission,
  deleteRole,
  getPermission,
  getRole,
  listPermissions,
  listRoles,
  setRolePermissions,
  updatePermission,
  updateRole,
  limit,
  multiLimit,
  deleteNamespace,
  deleteOverride,
  getOverride,
  listNamespaces,
  listOverrides,
  setOverride,
  createRootKey,
  deleteRootKey,
  listRootKeys,
  rerollRootKey,
  updateRootKey,
  createWorkspace,
  listWorkspaces,
  updateWorkspace,
  listEvents,
  getApiStats,
  getIdentityStats,
  getKeyStats,
  getRatelimitStats,
];
