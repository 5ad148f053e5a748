import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { MutationContext } from "../../platform/rpc/operation.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { admitCall } from "../../platform/rpc/workspace-limit.ts";
import type { StoreReader, StoreWriter } from "../../platform/store/workspace-store.ts";
import type { DatabaseServices } from "../database-services.ts";
import { KeyReader, KeyWriter } from "../keys/statements/keys.ts";
import type { StoredKey } from "../keys/statements/stored-key.ts";
import type { Services } from "../services.ts";
import { type PortalCaller, portalCallerOf } from "./portal-caller.ts";
import { type PortalAction, portalRequirement } from "./terms.ts";

/**
 * The session that makes the call.
 *
 * @throws {Problem} `insufficient_permissions`, if it may not do this or its root key lost the permission for it.
 */
export function callerWith(action: PortalAction, principal: Principal): PortalCaller {
  const caller = portalCallerOf(principal);
  if (!caller || !mayAct(action, caller, principal)) {
    throw new Problem("insufficient_permissions", `This session does not allow: ${action}.`);
  }
  return caller;
}

/** Whether the session may do this, and its root key still has the permission for it. */
export function mayAct(action: PortalAction, { terms, apiId }: PortalCaller, principal: Principal): boolean {
  return terms.actions.includes(action) && principal.may(portalRequirement(action, apiId));
}

/** Whether the key is one of the owner of the session in its API. */
export function isOwn(key: StoredKey, { apiId, identityId }: PortalCaller): boolean {
  return key.api_id === apiId && key.identity?.id === identityId;
}

/** Locks a key of the owner; undefined if there is none. Another key looks like one that does not exist. */
export async function lockOwnKey(
  keyId: string,
  caller: PortalCaller,
  store: StoreWriter,
): Promise<StoredKey | undefined> {
  const key = await store.of(KeyWriter).findForUpdate(keyId);
  return key && isOwn(key, caller) ? key : undefined;
}

/** The number of keys of the owner in the API that have not expired. */
export async function countOwnKeys(
  { apiId, externalId }: PortalCaller,
  store: StoreReader,
  now: Instant,
): Promise<number> {
  const keys = store.of(KeyReader);
  let total = 0;
  for (const state of ["active", "disabled"] as const) {
    total += (await keys.count({ apiId, filter: { externalId, state }, now })).count;
  }
  return total;
}

/**
 * Counts a new key for its owner: it is deleted some time after it expired, and earlier if the owner has too many such keys
 * by then. So an owner who replaces keys uses up a small part of the keys of the workspace. The owner must be locked.
 */
export async function countForOwner(
  keyId: string,
  caller: PortalCaller,
  { store, now, invalidate }: Pick<MutationContext<never>, "store" | "now" | "invalidate">,
  { portal }: Pick<DatabaseServices, "portal">,
): Promise<void> {
  const keys = store.of(KeyWriter);
  await keys.update(keyId, { deleted_once_expired: 1 });
  for (const ended of await keys.deleteEnded(caller, portal.endedKeysMax, now)) invalidate.key(ended);
}

const DAY = 24 * 3_600_000;

/**
 * Counts a new key that an owner makes against the owner's rate, over all sessions.
 *
 * @throws {Problem} or rejects with one beyond the rate.
 */
export function admitOwnersKey(
  principal: Principal,
  { limiter, portal: { keysPerDay } }: Pick<Services, "limiter" | "portal">,
): Promise<void> {
  return admitCall(
    { counter: `r\0${portalCallerOf(principal)!.identityId}`, limit: keysPerDay, owner: principal.workspaceId },
    "portal-new-keys",
    `There were ${keysPerDay} new keys within a day, which is the maximum (LATCHKEY_PORTAL_KEYS_PER_DAY). Try again later.`,
    limiter,
    DAY,
  );
}
