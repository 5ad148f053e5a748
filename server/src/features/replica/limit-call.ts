import { z } from "zod";
import type { NamespaceRecord } from "../../../../engine/src/directory/records.ts";
import type { MeteredAnswer, MeteredContext } from "../../platform/rpc/operation.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { LimitInput } from "../ratelimits/fields.ts";
import { countLimit, limit } from "../ratelimits/limit.ts";
import { countLimits, ENTRIES_MAX, multiLimit } from "../ratelimits/multiLimit.ts";
import type { Services } from "../services.ts";
import { CallerAddress, CallerRootKey } from "./fields.ts";

/** A call of `ratelimits.limit` or `ratelimits.multiLimit`. */
export const LimitCall = z.strictObject({
  operation: z.enum([limit.name, multiLimit.name]),
  entries: z
    .array(
      LimitInput.extend({
        namespaceId: text(1, 255)
          .optional()
          .describe(
            "The namespace in which the edge found that its caller may count. Omitted: the caller is the edge.",
          ),
      }),
    )
    .min(1)
    .max(ENTRIES_MAX)
    .describe("One for `ratelimits.limit`."),
  address: CallerAddress.optional(),
  rootKey: CallerRootKey,
});

export type LimitCall = z.output<typeof LimitCall>;

/** What the result of such a call has. */
export const limitOutputs = [limit.declaration.output, multiLimit.declaration.output] as const;

/** The context of a call in a charge, which is decided after the others before it. Without an address it is that of the edge. */
export function contextOfCall(
  principal: Principal,
  address: string | undefined,
  { clock, replicas }: Pick<Services, "clock" | "replicas">,
  context: MeteredContext<never>,
) {
  return {
    ...context,
    now: clock.now(),
    startedAt: clock.monotonic(),
    principal,
    address: address ?? context.address,
    idempotent: undefined,
    requestId: replicas.newRequestId(),
  };
}

/**
 * Decides a call by the code of its operation; undefined if the edge must pass it on: because a namespace does not exist, is no
 * longer the one that the edge knows, or is not open to the edge.
 */
export async function decideLimits(
  { operation, entries, address }: LimitCall,
  principal: Principal,
  services: Services,
  context: MeteredContext<never>,
): Promise<MeteredAnswer | undefined> {
  const { workspaceId } = principal;
  const found = await Promise.all(entries.map(({ namespace }) => services.namespaces.find(namespace, workspaceId)));
  const namespaces: NamespaceRecord[] = [];
  for (const [i, { namespaceId }] of entries.entries()) {
    const record = found[i];
    if (!record || !principal.may(record.limitRequirement)) return undefined;
    if (namespaceId !== undefined && namespaceId !== record.namespaceId) return undefined;
    namespaces.push(record);
  }
  const call = contextOfCall(principal, address, services, context);
  const [entry, another] = entries;
  const [namespace] = namespaces;
  if (operation === multiLimit.name) return countLimits(entries, namespaces, services, call);
  if (entry === undefined || namespace === undefined || another !== undefined) {
    throw new Problem("invalid_input", "A call of ratelimits.limit has one entry.");
  }
  return countLimit(entry, namespace, services, call);
}
