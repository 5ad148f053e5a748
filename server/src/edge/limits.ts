import type { z } from "zod";
import { decideByCall } from "../../../engine/src/errors/decided-elsewhere.ts";
import type { Charges } from "../../../engine/src/replica/charges.ts";
import type { LimitCall, LimitEntry } from "../../../engine/src/replica/home.ts";
import { chargeCaller } from "../../../engine/src/replica/replica-verification.ts";
import { ELSEWHERE } from "../../../engine/src/replica/source.ts";
import type { Namespaces } from "../../../engine/src/verification/namespaces.ts";
import type { LimitInput } from "../features/ratelimits/fields.ts";
import { limit } from "../features/ratelimits/limit.ts";
import { multiLimit } from "../features/ratelimits/multiLimit.ts";
import { type MeteredAnswer, type MeteredContext, usingServices } from "../platform/rpc/operation.ts";
import type { Principal } from "../platform/rpc/principal.ts";
import { chargeLimits } from "./charge-problems.ts";

/** What limits at an edge use. */
export interface EdgeLimitServices {
  readonly namespaces: Pick<Namespaces<Principal>, "find">;
  readonly charges: Pick<Charges, "charge">;
  /** The workspace of the edge. */
  readonly workspaceId: string;
}

const { metered } = usingServices<EdgeLimitServices>();

/** The operations of limits: the caller is judged here, and home charges, together with the other calls of a moment. */
export const edgeLimits = [
  metered(limit.name, limit.declaration).handle((input, services, context) =>
    charge(limit.name, [input], services, context),
  ),
  metered(multiLimit.name, multiLimit.declaration).handle((input, services, context) =>
    charge(multiLimit.name, input, services, context),
  ),
];

async function charge(
  operation: LimitCall["operation"],
  input: readonly z.output<typeof LimitInput>[],
  { namespaces, charges, workspaceId }: EdgeLimitServices,
  { principal, address, workspaceId: asked }: MeteredContext<never>,
): Promise<MeteredAnswer> {
  if (principal === null || asked !== workspaceId) decideByCall();
  const found = await Promise.all(input.map(({ namespace }) => namespaces.find(namespace, workspaceId)));
  // The first call creates a namespace.
  const known = found.map((namespace) =>
    namespace === null || namespace.namespaceId === ELSEWHERE ? decideByCall() : namespace,
  );
  for (const { limitRequirement } of known) principal.authorize(limitRequirement);
  const entries = input.map((entry, i): LimitEntry => ({ ...entry, namespaceId: known[i]?.namespaceId ?? ELSEWHERE }));
  const call = { operation, entries, address, ...chargeCaller(principal) };
  const { data, headers } = await chargeLimits(charges, call);
  const text = JSON.stringify(data);
  return headers === undefined ? text : { data: text, headers };
}
