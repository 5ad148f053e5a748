import { z } from "zod";
import { limitNameOf } from "../../../../engine/src/directory/records.ts";
import type { Receipt } from "../../../../engine/src/limits/counters.ts";
import type { Limiter } from "../../../../engine/src/limits/limiter.ts";
import { LIMIT_MAX } from "../../../../engine/src/rules/window.ts";
import { integer, RATELIMITS_PER_KEY_MAX, rejectRepeatedNames, text } from "../../platform/vocabulary/schema.ts";

/** Limits as a settlement names them. */
export const SettledLimits = z
  .array(
    z.strictObject({
      name: text(1, 255),
      cost: integer(0, LIMIT_MAX).describe("What the work did cost of this limit. It can be more than was charged."),
    }),
  )
  .max(RATELIMITS_PER_KEY_MAX)
  .check(({ value, issues }) => rejectRepeatedNames(value, issues));

export type SettledLimits = z.output<typeof SettledLimits>;

/** The name of the first limit that the hold did not charge. `limits`: as the hold stores them. */
export function findUnchargedLimit(limits: string | null, settled: SettledLimits): string | undefined {
  if (settled.length === 0) return undefined;
  const names = new Set(receiptOf(limits).charges.map(({ counter }) => limitNameOf(counter)));
  return settled.find(({ name }) => !names.has(name))?.name;
}

/** Corrects the limits of a hold that has ended. To be called once per hold, because its receipt is used once. */
export async function correctLimits(
  limits: string,
  settled: SettledLimits,
  limiter: Pick<Limiter, "adjust">,
): Promise<void> {
  const receipt = receiptOf(limits);
  // A name stands for the limit of the key and for that of its identity.
  const costs = new Map(settled.map(({ name, cost }) => [name, cost]));
  await limiter.adjust(
    receipt,
    receipt.charges.map(({ counter }) => costs.get(limitNameOf(counter))),
  );
}

function receiptOf(limits: string | null): Receipt {
  return limits === null ? { charges: [] } : (JSON.parse(limits) as Receipt);
}
