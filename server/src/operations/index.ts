import type { Operation } from "../rpc/operation.ts";
import { createApi } from "./apis/createApi.ts";
import { deleteApi } from "./apis/deleteApi.ts";
import { getApi } from "./apis/getApi.ts";
import { listKeys } from "./apis/listKeys.ts";
import { createKey } from "./keys/createKey.ts";
import { deleteKey } from "./keys/deleteKey.ts";
import { getKey } from "./keys/getKey.ts";
import { rerollKey } from "./keys/rerollKey.ts";
import { updateCredits } from "./keys/updateCredits.ts";
import { updateKey } from "./keys/updateKey.ts";
import { verifyKey } from "./keys/verifyKey.ts";
import { whoami } from "./keys/whoami.ts";

/** What the operations of each namespace are about. */
export const namespaces: Readonly<Record<string, string>> = {
  apis: "An API is a namespace of keys.",
  keys: "What you hand out to your users, and verify when they come back with it.",
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
];
