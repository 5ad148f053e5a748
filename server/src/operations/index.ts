import type { Operation } from "../rpc/operation.ts";
import { createApi } from "./apis/createApi.ts";
import { deleteApi } from "./apis/deleteApi.ts";
import { getApi } from "./apis/getApi.ts";
import { listKeys } from "./apis/listKeys.ts";
import { createIdentity } from "./identities/createIdentity.ts";
import { deleteIdentity } from "./identities/deleteIdentity.ts";
import { getIdentity } from "./identities/getIdentity.ts";
import { listIdentities } from "./identities/listIdentities.ts";
import { updateIdentity } from "./identities/updateIdentity.ts";
import { createKey } from "./keys/createKey.ts";
import { deleteKey } from "./keys/deleteKey.ts";
import { getKey } from "./keys/getKey.ts";
import { rerollKey } from "./keys/rerollKey.ts";
import { updateCredits } from "./keys/updateCredits.ts";
import { updateKey } from "./keys/updateKey.ts";
import { verifyKey } from "./keys/verifyKey.ts";
import { whoami } from "./keys/whoami.ts";
import { deleteNamespace } from "./ratelimits/deleteNamespace.ts";
import { deleteOverride } from "./ratelimits/deleteOverride.ts";
import { getOverride } from "./ratelimits/getOverride.ts";
import { limit } from "./ratelimits/limit.ts";
import { listNamespaces } from "./ratelimits/listNamespaces.ts";
import { listOverrides } from "./ratelimits/listOverrides.ts";
import { multiLimit } from "./ratelimits/multiLimit.ts";
import { setOverride } from "./ratelimits/setOverride.ts";

/** What the operations of each namespace are about. */
export const namespaces: Readonly<Record<string, string>> = {
  apis: "An API is a namespace of keys.",
  keys: "What you hand out to your users, and verify when they come back with it.",
  identities: "A user, or whatever else owns keys. Its keys share its limits.",
  ratelimits: "Limits for anything, with or without keys.",
};

/** Every operation there is, in the order of the reference. */
export const operations: readonly Operation[] = [
  createApi,
  deleteApi,
  getApi,
  listKeys,
  createKey,
  deleteKey,
  getKey,
  rerollKey,
  updateCredits,
  updateKey,
  verifyKey,
  whoami,
  createIdentity,
  deleteIdentity,
  getIdentity,
  listIdentities,
  updateIdentity,
  limit,
  multiLimit,
  deleteNamespace,
  deleteOverride,
  getOverride,
  listNamespaces,
  listOverrides,
  setOverride,
];
