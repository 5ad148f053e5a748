import { getApiStats } from "../features/analytics/getApiStats.ts";
import { getBudgetStats } from "../features/analytics/getBudgetStats.ts";
import { getIdentityStats } from "../features/analytics/getIdentityStats.ts";
import { getKeyStats } from "../features/analytics/getKeyStats.ts";
import { getRatelimitStats } from "../features/analytics/getRatelimitStats.ts";
import { listDecisions as listLoggedDecisions } from "../features/analytics/listDecisions.ts";
import { listTopIdentities } from "../features/analytics/listTopIdentities.ts";
import { listTopKeys } from "../features/analytics/listTopKeys.ts";
import { listUsage } from "../features/analytics/listUsage.ts";
import { countKeys } from "../features/apis/countKeys.ts";
import { createApi } from "../features/apis/createApi.ts";
import { deleteApi } from "../features/apis/deleteApi.ts";
import { deleteKeys } from "../features/apis/deleteKeys.ts";
import { getApi } from "../features/apis/getApi.ts";
import { getLeakKit } from "../features/apis/getLeakKit.ts";
import { listApis } from "../features/apis/listApis.ts";
import { listKeys } from "../features/apis/listKeys.ts";
import { updateApi } from "../features/apis/updateApi.ts";
import { updateKeys } from "../features/apis/updateKeys.ts";
import { listEvents as listAuditEvents } from "../features/audit/listEvents.ts";
import { createBudget } from "../features/budgets/createBudget.ts";
import { deleteBudget } from "../features/budgets/deleteBudget.ts";
import { getBudget } from "../features/budgets/getBudget.ts";
import { listBudgets } from "../features/budgets/listBudgets.ts";
import { updateBudget } from "../features/budgets/updateBudget.ts";
import { updateCredits as updateBudgetCredits } from "../features/budgets/updateCredits.ts";
import { listEvents } from "../features/events/listEvents.ts";
import { extendHold } from "../features/holds/extendHold.ts";
import { getHold } from "../features/holds/getHold.ts";
import { listHolds } from "../features/holds/listHolds.ts";
import { releaseHold } from "../features/holds/releaseHold.ts";
import { settleHold } from "../features/holds/settleHold.ts";
import { createIdentity } from "../features/identities/createIdentity.ts";
import { deleteIdentity } from "../features/identities/deleteIdentity.ts";
import { getIdentity } from "../features/identities/getIdentity.ts";
import { listIdentities } from "../features/identities/listIdentities.ts";
import { updateIdentity } from "../features/identities/updateIdentity.ts";
import { addPermissions } from "../features/keys/addPermissions.ts";
import { addRoles } from "../features/keys/addRoles.ts";
import { createKey } from "../features/keys/createKey.ts";
import { deleteKey } from "../features/keys/deleteKey.ts";
import { deriveKey } from "../features/keys/deriveKey.ts";
import { deriveOwnKey } from "../features/keys/deriveOwnKey.ts";
import { explainVerification } from "../features/keys/explainVerification.ts";
import { getKey } from "../features/keys/getKey.ts";
import { getOwnKey } from "../features/keys/getOwnKey.ts";
import { listDerivedKeys } from "../features/keys/listDerivedKeys.ts";
import { migrateKeys } from "../features/keys/migrateKeys.ts";
import { removePermissions } from "../features/keys/removePermissions.ts";
import { removeRoles } from "../features/keys/removeRoles.ts";
import { reportLeak } from "../features/keys/reportLeak.ts";
import { rerollKey } from "../features/keys/rerollKey.ts";
import { restoreKey } from "../features/keys/restoreKey.ts";
import { setPermissions } from "../features/keys/setPermissions.ts";
import { setRoles } from "../features/keys/setRoles.ts";
import { updateCredits } from "../features/keys/updateCredits.ts";
import { updateKey } from "../features/keys/updateKey.ts";
import { verifyKey } from "../features/keys/verifyKey.ts";
import { whoami } from "../features/keys/whoami.ts";
import { createPermission } from "../features/permissions/createPermission.ts";
import { createRole } from "../features/permissions/createRole.ts";
import { deletePermission } from "../features/permissions/deletePermission.ts";
import { deleteRole } from "../features/permissions/deleteRole.ts";
import { getPermission } from "../features/permissions/getPermission.ts";
import { getRole } from "../features/permissions/getRole.ts";
import { listPermissions } from "../features/permissions/listPermissions.ts";
import { listRoles } from "../features/permissions/listRoles.ts";
import { setRolePermissions } from "../features/permissions/setRolePermissions.ts";
import { updatePermission } from "../features/permissions/updatePermission.ts";
import { updateRole } from "../features/permissions/updateRole.ts";
import { createPlan } from "../features/plans/createPlan.ts";
import { deletePlan } from "../features/plans/deletePlan.ts";
import { getPlan } from "../features/plans/getPlan.ts";
import { listPlans } from "../features/plans/listPlans.ts";
import { previewUpdate } from "../features/plans/previewUpdate.ts";
import { updatePlan } from "../features/plans/updatePlan.ts";
import { createKey as createOwnKey } from "../features/portal/createKey.ts";
import { createSession as createPortalSession } from "../features/portal/createSession.ts";
import { deleteKey as deleteOwnKey } from "../features/portal/deleteKey.ts";
import { deletePortalSessions } from "../features/portal/deletePortalSessions.ts";
import { getSession as getPortalSession } from "../features/portal/getSession.ts";
import { getTotalUsage } from "../features/portal/getTotalUsage.ts";
import { getUsage } from "../features/portal/getUsage.ts";
import { listDerivedKeys as listOwnDerivedKeys } from "../features/portal/listDerivedKeys.ts";
import { listKeys as listOwnKeys } from "../features/portal/listKeys.ts";
import { listPortalSessions } from "../features/portal/listPortalSessions.ts";
import { renameKey } from "../features/portal/renameKey.ts";
import { rerollKey as rerollOwnKey } from "../features/portal/rerollKey.ts";
import { deleteNamespace } from "../features/ratelimits/deleteNamespace.ts";
import { deleteOverride } from "../features/ratelimits/deleteOverride.ts";
import { explainLimit } from "../features/ratelimits/explainLimit.ts";
import { getDescriptors } from "../features/ratelimits/getDescriptors.ts";
import { getOverride } from "../features/ratelimits/getOverride.ts";
import { limit } from "../features/ratelimits/limit.ts";
import { listNamespaces } from "../features/ratelimits/listNamespaces.ts";
import { listOverrides } from "../features/ratelimits/listOverrides.ts";
import { multiLimit } from "../features/ratelimits/multiLimit.ts";
import { setDescriptors } from "../features/ratelimits/setDescriptors.ts";
import { setOverride } from "../features/ratelimits/setOverride.ts";
import { charge } from "../features/replica/charge.ts";
import { lease } from "../features/replica/lease.ts";
import { listChanges } from "../features/replica/listChanges.ts";
import { report } from "../features/replica/report.ts";
import { resolveKeys } from "../features/replica/resolveKeys.ts";
import { createRootKey } from "../features/rootKeys/createRootKey.ts";
import { deleteRootKey } from "../features/rootKeys/deleteRootKey.ts";
import { deleteSessions } from "../features/rootKeys/deleteSessions.ts";
import { listRootKeys } from "../features/rootKeys/listRootKeys.ts";
import { listSessions } from "../features/rootKeys/listSessions.ts";
import { rerollRootKey } from "../features/rootKeys/rerollRootKey.ts";
import { updateRootKey } from "../features/rootKeys/updateRootKey.ts";
import { getFindings } from "../features/system/getFindings.ts";
import { getStatus } from "../features/system/getStatus.ts";
import { listDecisions } from "../features/system/listDecisions.ts";
import { search } from "../features/system/search.ts";
import { createWebhook } from "../features/webhooks/createWebhook.ts";
import { deleteWebhook } from "../features/webhooks/deleteWebhook.ts";
import { getWebhook } from "../features/webhooks/getWebhook.ts";
import { listDeliveries } from "../features/webhooks/listDeliveries.ts";
import { listWebhooks } from "../features/webhooks/listWebhooks.ts";
import { redeliver } from "../features/webhooks/redeliver.ts";
import { rotateSecret } from "../features/webhooks/rotateSecret.ts";
import { sendTest } from "../features/webhooks/sendTest.ts";
import { updateWebhook } from "../features/webhooks/updateWebhook.ts";
import { createWorkspace } from "../features/workspaces/createWorkspace.ts";
import { listWorkspaces } from "../features/workspaces/listWorkspaces.ts";
import { updateWorkspace } from "../features/workspaces/updateWorkspace.ts";
import type { Operation } from "../platform/rpc/operation.ts";

/** The description of each namespace of operations. */
export const namespaces: Readonly<Record<string, string>> = {
  apis: "An API is a namespace of keys.",
  keys: "Keys that you issue to your users and verify on their requests.",
  identities: "Owners of keys, such as users or organizations. The keys of an identity share its limits.",
  plans: "What many keys and identities get from one place: limits, permissions and roles.",
  budgets: "Credits that many keys share, in trees of up to four levels.",
  holds: "Credits that calls hold until their cost is known.",
  analytics: "Statistics of verifications and rate limits.",
  permissions: "Permissions of keys, and roles as named sets of permissions.",
  ratelimits: "Rate limits for any identifier, independent of keys.",
  portal: "Sessions in which the owners of keys manage their own keys.",
  rootKeys: "Root keys authenticate programs to this service.",
  workspaces: "Isolated tenants of the service. The default workspace manages them.",
  audit: "The audit log of the workspace.",
  events: "What happened in the workspace, for programs that react to it.",
  webhooks: "Endpoints to which events of the workspace are sent.",
  system: "The service itself, and what needs attention in the workspace.",
};

/** All operations, in the order of the reference. */
const all = [
  countKeys,
  createApi,
  deleteApi,
  getApi,
  getLeakKit,
  listApis,
  listKeys,
  updateApi,
  updateKeys,
  deleteKeys,
  addPermissions,
  addRoles,
  createKey,
  deleteKey,
  deriveKey,
  deriveOwnKey,
  getKey,
  getOwnKey,
  listDerivedKeys,
  migrateKeys,
  removePermissions,
  removeRoles,
  reportLeak,
  rerollKey,
  restoreKey,
  setPermissions,
  setRoles,
  updateCredits,
  updateKey,
  // Before `explainVerification`: clients name what both have after the first.
  verifyKey,
  explainVerification,
  whoami,
  createIdentity,
  deleteIdentity,
  getIdentity,
  listIdentities,
  updateIdentity,
  createBudget,
  deleteBudget,
  getBudget,
  listBudgets,
  updateBudget,
  updateBudgetCredits,
  extendHold,
  getHold,
  listHolds,
  releaseHold,
  settleHold,
  createPlan,
  deletePlan,
  getPlan,
  listPlans,
  previewUpdate,
  updatePlan,
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
  explainLimit,
  getDescriptors,
  getOverride,
  listNamespaces,
  listOverrides,
  setDescriptors,
  setOverride,
  createPortalSession,
  deletePortalSessions,
  listPortalSessions,
  createRootKey,
  deleteRootKey,
  deleteSessions,
  listRootKeys,
  listSessions,
  rerollRootKey,
  updateRootKey,
  createWorkspace,
  listWorkspaces,
  updateWorkspace,
  listAuditEvents,
  listEvents,
  createWebhook,
  deleteWebhook,
  getWebhook,
  listDeliveries,
  listWebhooks,
  redeliver,
  rotateSecret,
  sendTest,
  updateWebhook,
  getApiStats,
  getBudgetStats,
  getIdentityStats,
  getKeyStats,
  getRatelimitStats,
  listLoggedDecisions,
  listTopIdentities,
  listTopKeys,
  listUsage,
  getFindings,
  getStatus,
  listDecisions,
  search,
] as const;

export type OperationName = (typeof all)[number]["name"];

export const operations: readonly Operation<OperationName>[] = all;

const ofPortal = [
  getPortalSession,
  listOwnKeys,
  listOwnDerivedKeys,
  createOwnKey,
  rerollOwnKey,
  renameKey,
  deleteOwnKey,
  getUsage,
  getTotalUsage,
] as const;

export type PortalOperationName = (typeof ofPortal)[number]["name"];

const ofReplicas = [listChanges, resolveKeys, charge, lease, report] as const;

export type ReplicaOperationName = (typeof ofReplicas)[number]["name"];

/** What edges call. They are not part of the API: their callers are the programs of this repository. */
export const replicaOperations: readonly Operation<ReplicaOperationName>[] = ofReplicas;

/** What sessions of the portal can call. They are not part of the API: their callers are the portal's page and element. */
export const portalOperations: readonly Operation<PortalOperationName>[] = ofPortal;
