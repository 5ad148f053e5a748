import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { SoughtHash } from "../../../../engine/src/verification/request.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { OPEN_PERMISSION, openRequirement } from "./fields.ts";
import type { ReplicaServices } from "./service.ts";

/** The caller of an edge after its question has waited: its root key is the authority of all that the question has. */
export async function afterWait(caller: Principal, now: Instant): Promise<Principal> {
  const current = caller.isCurrent(now) ? caller : await caller.renew(now);
  current.authorizeSome([OPEN_PERMISSION]);
  return current;
}

/** A key by its hash, as far as the root key of an edge opens its API. */
export function soughtBy(caller: Principal, hash: string, { lookups }: Pick<ReplicaServices, "lookups">): SoughtHash {
  return {
    hash,
    opens: (apiId) => caller.may(openRequirement(apiId)),
    lookUp: (load) => lookups.spend(caller.rootKeyId, load),
  };
}
