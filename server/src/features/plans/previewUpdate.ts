import { z } from "zod";
import type { DirectoryLimit } from "../../../../engine/src/directory/stored.ts";
import type { ConcurrencyLimit } from "../../../../engine/src/rules/slots.ts";
import { query } from "../../platform/rpc/operation.ts";
import { limitValues, sortedSet } from "../../platform/vocabulary/changed-values.ts";
import { examplePlan, examplePlanInput } from "../../platform/vocabulary/examples.ts";
import { ModeOutput, ShadowOutput } from "../../platform/vocabulary/schema.ts";
import { OnEmpty } from "../budgets/record.ts";
import { PlanRefillOutput } from "../credits/record.ts";
import type { RatelimitSettings } from "../ratelimits/statements/ratelimits.ts";
import { storedBudget, storedCredits } from "./record.ts";
import { MEMBERS_EXAMINED_MAX, type Members, PlanMembers } from "./statements/members.ts";
import { PlanReader, type StoredPlan } from "./statements/plans.ts";
import { planUpdateInput } from "./updatePlan.ts";

const PlanUpdate = z.strictObject(planUpdateInput);

const Counted = z.strictObject({
  count: z.int(),
  isComplete: z.boolean().describe(`False if there are more than the ${MEMBERS_EXAMINED_MAX} that a call examines.`),
});

const Value = z.strictObject({
  limit: z.int().optional(),
  duration: z.int().optional(),
  mode: ModeOutput.optional(),
  autoApply: z.boolean().optional(),
  shadow: ShadowOutput.optional(),
  amount: z.int().optional(),
  refill: PlanRefillOutput.optional(),
  onEmpty: OnEmpty.optional(),
  thresholds: z.array(z.int()).optional(),
  unit: z.string().optional(),
});

const Change = z
  .strictObject({
    field: z.enum(["ratelimits", "concurrency", "credits", "budget", "permissions", "roles"]),
    name: z.string().optional().describe("That of the limit."),
    change: z.enum(["added", "removed", "changed"]),
    before: Value.optional().describe("Of a limit, of credits or of a budget, unless it is added."),
    after: Value.optional().describe("Of a limit, of credits or of a budget, unless it is removed."),
    added: z.array(z.string()).optional().describe("Of permissions and roles: those that keys get."),
    removed: z.array(z.string()).optional().describe("Those that keys lose, unless they have them otherwise."),
    keys: z.int().describe("Keys that get the change."),
    keysKeeping: z.int().describe("Keys that have a limit of this name or credits themselves, which stay."),
    identities: z.int().describe("Identities that get the change. Permissions and roles are those of keys only."),
    identitiesKeeping: z
      .int()
      .describe("Identities that have a limit of this name or a budget themselves, which stay."),
    startsAtZero: z
      .boolean()
      .describe("Whether what was counted so far no longer counts: the `duration` or `mode` differs."),
  })
  .meta({ id: "PlanChange", description: "What a change of a plan would do." });

export const previewUpdate = query("plans.previewUpdate", {
  summary: "Preview an update of a plan",
  description:
    "Takes the body of `plans.updatePlan`, and says what it would change for how many keys and identities. It changes nothing. " +
    "Without fields to change, it says who has the plan. The numbers are of keys and identities that are not deleted; one call " +
    `examines at most ${MEMBERS_EXAMINED_MAX} of each.`,
  permissions: ["plans.{planId}.read_plan"],
  input: PlanUpdate,
  output: z.strictObject({
    keys: Counted.describe("Those that have the plan themselves."),
    identities: Counted,
    changes: z.array(Change).describe("In the order of the fields and of the names of limits."),
  }),
  problems: ["plan_not_found"],
  examples: [
    {
      summary: "Raise a limit",
      input: { plan: examplePlan.name, ratelimits: [{ ...examplePlanInput.ratelimits[0], limit: 1_000 }] },
      output: {
        keys: { count: 0, isComplete: true },
        identities: { count: 0, isComplete: true },
        changes: [
          {
            field: "ratelimits",
            name: "requests",
            change: "changed",
            before: { limit: 600, duration: 60_000, autoApply: true },
            after: { limit: 1_000, duration: 60_000, autoApply: true },
            keys: 0,
            keysKeeping: 0,
            identities: 0,
            identitiesKeeping: 0,
            startsAtZero: false,
          },
        ],
      },
    },
    { summary: "A plan that does not exist", input: { plan: "platinum" }, problem: "plan_not_found" },
  ],
}).handle(async ({ plan: reference, ...given }, { store, principal, fail }) => {
  const plan = await store.of(PlanReader).find(reference);
  if (!plan) return fail("plan_not_found");
  principal.authorize(`plans.${plan.id}.read_plan`);
  const limits = given.ratelimits === undefined ? [] : changedLimits(plan.ratelimits, given.ratelimits ?? []);
  const slots = given.concurrency === undefined ? [] : changedSlots(plan.concurrency, given.concurrency ?? []);
  const names = limits.map(({ name }) => name);
  const members = store.of(PlanMembers);
  const keys = await members.count(plan.id, "key", names);
  const identities = await members.count(plan.id, "identity", names);
  const reached = (keysKeeping: number, identitiesKeeping: number) => ({
    keys: keys.count - keysKeeping,
    keysKeeping,
    identities: identities.count - identitiesKeeping,
    identitiesKeeping,
  });
  const ownCredits = given.credits === undefined ? 0 : await members.withOwnCredits(plan.id);
  const ownBudgets = given.budget === undefined ? 0 : await members.withOwnBudget(plan.id);
  return {
    keys: counted(keys),
    identities: counted(identities),
    changes: [
      ...limits.map(({ name, before, after }) => ({
        field: "ratelimits" as const,
        name,
        ...changeOf(before, after),
        ...reached(keys.withOwnLimit.get(name) ?? 0, identities.withOwnLimit.get(name) ?? 0),
        startsAtZero:
          before !== undefined &&
          after !== undefined &&
          (before.duration !== after.duration || before.mode !== after.mode),
      })),
      ...(await Promise.all(
        slots.map(async ({ name, before, after }) => ({
          field: "concurrency" as const,
          name,
          ...changeOf(before, after),
          ...reached(
            await members.withOwnConcurrency(plan.id, "key", name),
            await members.withOwnConcurrency(plan.id, "identity", name),
          ),
          startsAtZero: false,
        })),
      )),
      ...changed("credits", plan.credits, given.credits === undefined ? undefined : storedCredits(given.credits)).map(
        (change) => ({ ...change, keys: keys.count - ownCredits, keysKeeping: ownCredits, ...NO_IDENTITIES }),
      ),
      ...changed("budget", plan.budget, given.budget === undefined ? undefined : storedBudget(given.budget)).map(
        (change) => ({
          ...change,
          keys: 0,
          keysKeeping: 0,
          identities: identities.count - ownBudgets,
          identitiesKeeping: ownBudgets,
          startsAtZero: false,
        }),
      ),
      ...changedSets(plan, given).map((change) => ({
        ...change,
        keys: keys.count,
        keysKeeping: 0,
        ...NO_IDENTITIES,
      })),
    ],
  };
});

const NO_IDENTITIES = { identities: 0, identitiesKeeping: 0, startsAtZero: false };

function counted({ count, isComplete }: Members) {
  return { count, isComplete };
}

function changeOf<V>(before: V | undefined, after: V | undefined) {
  if (before === undefined) return { change: "added" as const, after };
  if (after === undefined) return { change: "removed" as const, before };
  return { change: "changed" as const, before, after };
}

type LimitValue = z.input<typeof Value>;

function changedLimits(former: readonly DirectoryLimit[], next: readonly RatelimitSettings[]) {
  const byName = (limits: ReturnType<typeof limitValues>) =>
    new Map(limits.map(({ name, ...value }) => [name, value as LimitValue]));
  return differing(byName(limitValues(former)), byName(limitValues(next)));
}

function changedSlots(former: readonly ConcurrencyLimit[], next: readonly ConcurrencyLimit[]) {
  const byName = (limits: readonly ConcurrencyLimit[]) => new Map(limits.map(({ name, limit }) => [name, { limit }]));
  return differing(byName(former), byName(next));
}

/** The limits that differ, in the order of their names. */
function differing<V extends LimitValue>(before: ReadonlyMap<string, V>, after: ReadonlyMap<string, V>) {
  return sortedSet([...before.keys(), ...after.keys()])
    .map((name) => ({ name, before: before.get(name), after: after.get(name) }))
    .filter((pair) => JSON.stringify(pair.before) !== JSON.stringify(pair.after));
}

/** The credits or the budget, if they differ. `after`: undefined: they stay. */
function changed<Field extends "credits" | "budget", Given extends object>(
  field: Field,
  before: Given | null,
  after: Given | null | undefined,
) {
  if (after === undefined || JSON.stringify(before) === JSON.stringify(after)) return [];
  return [{ field, ...changeOf(before ?? undefined, after ?? undefined) }];
}

/** The permissions and the roles, if they differ. */
function changedSets(
  plan: Pick<StoredPlan, "permissions" | "roles">,
  given: { permissions?: readonly string[] | null | undefined; roles?: readonly string[] | null | undefined },
) {
  return (["permissions", "roles"] as const).flatMap((field) => {
    const next = given[field];
    if (next === undefined) return [];
    const [before, after] = [new Set(plan[field]), new Set(next ?? [])];
    const added = sortedSet([...after].filter((name) => !before.has(name)));
    const removed = sortedSet([...before].filter((name) => !after.has(name)));
    if (added.length + removed.length === 0) return [];
    const change =
      before.size === 0 ? ("added" as const) : after.size === 0 ? ("removed" as const) : ("changed" as const);
    return [{ field, change, added, removed }];
  });
}
