import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { Caller, SoughtHash } from "../../../../engine/src/verification/request.ts";
import { JointPrincipal, type Principal } from "../../platform/rpc/principal.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { OPEN_PERMISSION, openRequirement } from "./fields.ts";
import type { ReplicaServices } from "./service.ts";

/** The caller of an edge after its question has waited: its root key is the authority of all that the question has. */
export async function afterWait(caller: Principal, now: Instant): Promise<Principal> {
  const current = await caller.atPresent(now);
  current.authorizeSome([OPEN_PERMISSION]);
  return current;
}

/** By caller: with the edge that asked last. */
const joint = new WeakMap<Principal, JointPrincipal>();

/**
 * The authority of a call of an edge. A caller with a root key of its own is judged by this too, also after a wait: what it may
 * not, the edge does not lend it.
 *
 * @param rootKey the hash of that root key; undefined: the caller has none, or is the edge.
 * @throws {Problem} or rejects with one if the root key may not make calls.
 */
export async function authorityFor(
  rootKey: string | undefined,
  edge: Principal,
  now: Instant,
  { authenticator, lookups }: Pick<ReplicaServices, "authenticator" | "lookups">,
): Promise<Principal> {
  if (rootKey === undefined) return edge;
  const caller = await authenticator.authenticateHash(rootKey, now, (load) => lookups.spend(edge.rootKeyId, load));
  if (caller.workspaceId !== edge.workspaceId) throw new Problem("authentication_failed");
  if (caller.rootKeyId === edge.rootKeyId) return edge;
  const known = joint.get(caller);
  if (known?.first === edge) return known;
  const made = new JointPrincipal(edge, caller);
  joint.set(caller, made);
  return made;
}

/** A key by its hash, as far as the root key of an edge opens its API, and a root key of its caller may verify keys there. */
export function soughtBy(caller: Principal, hash: string, { lookups }: Pick<ReplicaServices, "lookups">): SoughtHash {
  return {
    hash,
    edge: caller,
    opens,
    lookUp: (load) => lookups.spend(caller.rootKeyId, load),
  };
}

/** By what its caller may now: after a wait that is another principal. */
function opens(apiId: string, caller: Caller): boolean {
  if (!(caller instanceof JointPrincipal)) return caller.may(openRequirement(apiId));
  return caller.first.may(openRequirement(apiId)) && caller.second.may(`apis.${apiId}.verify_key`);
}
