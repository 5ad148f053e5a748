import type { ConcurrencyLimit } from "../../../../engine/src/rules/slots.ts";
import type { MutationContext } from "../../platform/rpc/operation.ts";
import { SlotWriter } from "../credits/statements/slots.ts";

/** The database value of limits of concurrency, in the order of their names. An empty list is stored as null. */
export function concurrencyColumn(limits: readonly ConcurrencyLimit[] | null | undefined): string | null {
  return limits && limits.length > 0 ? JSON.stringify(sortedByName(limits)) : null;
}

/** Limits of concurrency in the order in which they are stored. */
export function sortedByName(limits: readonly ConcurrencyLimit[]): ConcurrencyLimit[] {
  return limits.map(({ name, limit }) => ({ name, limit })).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Checks that every running program knows limits of concurrency, if there are any to store. */
export async function acceptConcurrency(
  limits: readonly ConcurrencyLimit[] | null | undefined,
  { store, fail }: Pick<MutationContext<"precondition_failed">, "store" | "fail">,
): Promise<void> {
  if (!(await store.of(SlotWriter).accepts(limits))) return fail("precondition_failed", OLDER_PROGRAMS_OF_SLOTS);
}

/** Why limits of concurrency cannot be stored. */
export const OLDER_PROGRAMS_OF_SLOTS =
  "Another node runs an earlier release, which would not count concurrent calls, or is starting. " +
  "Upgrade every node, then send the request again.";
