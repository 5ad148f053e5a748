import { z } from "zod";
import { LookupsExhausted } from "../../../../engine/src/directory/lookup-rate-limiter.ts";
import { type KeyRecord, limitCounter } from "../../../../engine/src/directory/records.ts";
import {
  isLeasable,
  LEASES_PER_QUESTION,
  type Lease,
  type LeasedCounter,
  RETURNS_PER_LEASE,
} from "../../../../engine/src/limits/leases.ts";
import { DURATION_MAX, LIMIT_MAX } from "../../../../engine/src/rules/window.ts";
import { chargesOnlyLimits } from "../../../../engine/src/verification/balances.ts";
import { yieldEventLoop } from "../../platform/rpc/event-loop.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import { integer, text } from "../../platform/vocabulary/schema.ts";
import { metered } from "../services.ts";
import { afterWait, soughtBy } from "./authority.ts";
import { EDGE_BODY_BYTES_MAX, Hash, OPEN_PERMISSION, openingCaller, Position } from "./fields.ts";
import type { ReplicaServices } from "./service.ts";

/** Limits of one question that are decided in one turn of the event loop: about a millisecond. */
const AT_ONCE = 16;

const LeaseId = text(16, 32, { regex: /^[a-zA-Z0-9]+$/, says: "must be letters and digits" });

const Return = z
  .strictObject({
    id: LeaseId,
    amount: integer(1, LIMIT_MAX).describe("The amount of the lease."),
    spent: integer(0, LIMIT_MAX).describe("How much of it was spent."),
  })
  .check(({ value, issues }) => {
    if (value.spent > value.amount) {
      issues.push({ code: "custom", input: value, path: ["spent"], message: "must not be more than amount" });
    }
  });

const Asked = z.strictObject({
  key: z.strictObject({ hash: Hash, name: text(1, 255), owner: z.enum(["key", "identity"]) }).describe("The limit."),
  limit: integer(0, LIMIT_MAX).describe("As the record of the edge says. With another one here, nothing is leased."),
  duration: integer(1, DURATION_MAX),
  want: integer(0, LIMIT_MAX).describe("The largest amount that is of use. 0: nothing."),
  returns: z.array(Return).max(RETURNS_PER_LEASE).optional().describe("Leases of this limit that have ended."),
});

type Asked = z.output<typeof Asked>;

export const lease = metered("replica.lease", {
  summary: "Lease parts of limits to an edge",
  description:
    "Charges amounts to limits that an edge then spends by itself, for at most 10 seconds, and takes back what it has not " +
    "spent. What is leased and what was lost is at most a tenth of the limit in its window.",
  bodyBytesMax: EDGE_BODY_BYTES_MAX,
  permissions: [OPEN_PERMISSION],
  input: z.strictObject({ position: Position.optional(), leases: z.array(Asked).min(1).max(LEASES_PER_QUESTION) }),
  output: z.strictObject({
    leases: z.array(
      z
        .strictObject({
          id: z.string(),
          amount: z.int(),
          remaining: z.int().describe("What remains of the limit besides."),
          reset: z.int().describe("The end of the window."),
          expiresIn: z.int().describe("Milliseconds from the question on."),
        })
        .nullable()
        .describe("Null: nothing is leased. Returns were taken."),
    ),
  }),
  problems: [],
  examples: [],
}).handle(async ({ position, leases }, { replicas, clock }, context) => {
  const caller = openingCaller(context);
  const { workspaceId } = context;
  const answers = await replicas.leasing.run(workspaceId, async () => {
    await replicas.stream.reach(position);
    const now = clock.now();
    const current = await afterWait(caller, now);
    // Before anything is counted: a question that fails leaves nothing behind.
    const found = await Promise.all(
      leases.map(async (asked) => ({ asked, key: await findKey(asked.key.hash, current, replicas) })),
    );
    const granted: (Lease | null)[] = [];
    for (let i = 0; i < found.length; i += AT_ONCE) {
      if (i > 0) await yieldEventLoop();
      const some = found.slice(i, i + AT_ONCE);
      granted.push(...(await Promise.all(some.map(({ asked, key }) => answer(asked, key, replicas, now)))));
    }
    return granted;
  });
  return JSON.stringify({ leases: answers });
});

/** The key, or null if the edge cannot have it. */
async function findKey(hash: string, caller: Principal, replicas: ReplicaServices): Promise<KeyRecord | null> {
  const sought = soughtBy(caller, hash, replicas);
  try {
    const found = await replicas.keys.findSought(sought, caller.workspaceId);
    return found !== null && sought.opens(found.apiId, caller) ? found : null;
  } catch (error) {
    // The other limits of the question are of keys that are known.
    if (error instanceof LookupsExhausted) return null;
    throw error;
  }
}

/** What was not spent comes back first: it can be leased again. */
async function answer(
  { key: { name, owner }, limit, duration, want, returns = [] }: Asked,
  key: KeyRecord | null,
  { leases }: ReplicaServices,
  now: number,
): Promise<Lease | null> {
  const ownerId = owner === "key" ? key?.poolId : key?.identity?.id;
  if (key === null || ownerId === undefined) return null;
  // Also of a limit that was changed or removed since.
  const counter: LeasedCounter = { counter: limitCounter(owner, ownerId, name), duration, owner: key.workspaceId };
  await Promise.all(returns.map(({ id, spent }) => leases.takeBack(counter, id, spent)));
  if (want === 0) return null;
  const stored = mayLease(key, now) && key.limits.find((one) => one.owner === owner && one.name === name);
  if (!stored || stored.limit !== limit || stored.duration !== duration || !isLeasable(stored)) return null;
  return leases.grant({ ...counter, limit }, want);
}

/** Whether an edge decides calls of this key: nothing but its limits is charged. */
function mayLease(key: KeyRecord, now: number): boolean {
  return (
    !key.isDeleted &&
    key.workspaceEnabled &&
    key.enabled &&
    (key.expiresAt === null || now < key.expiresAt) &&
    !key.isUnused &&
    chargesOnlyLimits(key)
  );
}
