/**
 * Random calls of budgets on a whole service, compared with a model after each of them: what each budget has, what was spent
 * of it and what lapsed, and which calls pass. The model knows no books, no lanes and no batches.
 */
import assert from "node:assert/strict";
import type { Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import type { TestServer } from "../harness.ts";

const DAY = 86_400_000;
const LEVELS_MAX = 4;
/** Few, so that calls meet in the same budgets. */
const BUDGETS_MAX = 10;
const KEYS = 6;
const IDENTITIES = 2;
/** Calls of one key that are sent together in a step. */
const CROWD = 6;
/** Models that make calls at the same time, and the steps of each until a day can pass for all. */
const WORKSPACES = 20;
const STEPS_PER_ROUND = 10;
/** Rounds between two comparisons of what the database itself promises. */
const RULES_EVERY = 25;

/** A balance as the calls so far must have left it. */
interface ModelBalance {
  remaining: number;
  isWatched: boolean;
}

interface ModelBudget extends ModelBalance {
  id: string;
  spent: number;
  /** At least and at most. Refills of which the balance was not written in between count as one. */
  lapsed: [number, number];
  refill: { amount: number; rollover?: number } | null;
  children: number;
  parent: ModelBudget | undefined;
}

/** What has a `budgetId`. */
interface ModelOwner {
  budget: ModelBudget | undefined;
}

interface ModelKey extends ModelOwner {
  keyId: string;
  key: string;
  identity: (ModelOwner & { externalId: string }) | undefined;
  /** Undefined: unlimited. */
  credits: ModelBalance | undefined;
}

/**
 * Compares the budgets of a service with models that make this many random calls together, in workspaces of their own and at
 * the same time.
 *
 * @returns how many verifications passed, and how many were refused.
 */
export async function compareBudgets(
  server: TestServer,
  { steps, seed, onRound = () => {} }: { steps: number; seed: number; onRound?: (steps: number) => void },
): Promise<{ passed: number; refused: number }> {
  // Several at once would not all be accepted on PostgreSQL.
  await server.ok("budgets.createBudget", { name: "first", remaining: 0 });
  const models = await Promise.all(
    Array.from({ length: WORKSPACES }, async (_, i) => {
      const { key } = await server.workspace(`budgets ${i}`);
      return new BudgetModel(server, key, seededRandom(seed + i)).open();
    }),
  );
  const random = seededRandom(seed - 1);
  let made = 0;
  for (let round = 1; made < steps; round++) {
    await Promise.all(models.map((model) => model.run(STEPS_PER_ROUND)));
    made += WORKSPACES * STEPS_PER_ROUND;
    if (random.below(2) === 0) {
      server.clock.step(DAY);
      for (const model of models) model.passDay();
    }
    if (round % RULES_EVERY !== 0 && made < steps) continue;
    const broken = (await server.store.read("brokenRules", null)).filter(({ rows }) => rows > 0);
    assert.deepEqual(broken, [], `after ${made} steps`);
    onRound(made);
  }
  const sum = (kind: "passed" | "refused") => models.reduce((all, { counts }) => all + counts[kind], 0);
  return { passed: sum("passed"), refused: sum("refused") };
}

/** The budgets of one workspace, and what a random call must do to them. */
class BudgetModel {
  readonly #server: TestServer;
  readonly #rootKey: string;
  readonly #random: Random;
  readonly #budgets = new Map<string, ModelBudget>();
  readonly #identities: (ModelOwner & { externalId: string })[] = [];
  readonly #keys: ModelKey[] = [];
  #steps = 0;
  /** How many verifications passed, and how many were refused. */
  readonly counts = { passed: 0, refused: 0 };

  constructor(server: TestServer, rootKey: string, random: Random) {
    this.#server = server;
    this.#rootKey = rootKey;
    this.#random = random;
  }

  /** Creates keys with and without credits and identities of their own. */
  async open(): Promise<this> {
    const { apiId } = await this.#ok("apis.createApi", { name: "model" });
    for (let i = 0; i < IDENTITIES; i++) {
      const externalId = `owner-${i}`;
      await this.#ok("identities.createIdentity", { externalId });
      this.#identities.push({ externalId, budget: undefined });
    }
    for (let i = 0; i < KEYS; i++) {
      const identity = this.#identities[i];
      const credits = i % 2 === 0 ? { remaining: 1_000 } : undefined;
      const made = await this.#ok("keys.createKey", {
        apiId,
        ...(identity && { externalId: identity.externalId }),
        ...(credits && { credits }),
      });
      this.#keys.push({ ...made, identity, budget: undefined, credits: credits && { ...credits, isWatched: false } });
    }
    return this;
  }

  /** Makes this many random calls, and compares all budgets with the model after each. */
  async run(steps: number): Promise<void> {
    for (let i = 0; i < steps; i++) {
      const what = await this.#step();
      await this.#compare(`step ${++this.#steps}: ${what}`);
    }
  }

  /** A day has passed, and each refill was due once. */
  passDay(): void {
    for (const budget of this.#budgets.values()) {
      const { refill, remaining } = budget;
      if (refill === null) continue;
      const carried = Math.max(0, Math.min(remaining, refill.rollover ?? 0));
      budget.lapsed[1] += Math.max(0, remaining) - carried;
      budget.remaining = carried + refill.amount;
    }
  }

  #ok(operation: string, body: object) {
    return this.#server.ok(operation, body, { as: this.#rootKey });
  }

  async #compare(at: string): Promise<void> {
    const shown = await this.#ok("budgets.listBudgets", {});
    assert.equal(shown.length, this.#budgets.size, at);
    for (const { budgetId, remaining, totals } of shown) {
      const model = this.#budgets.get(budgetId);
      assert(model, `${at}: ${budgetId} exists`);
      const { granted, spent, lapsed } = totals;
      assert.deepEqual([remaining, spent], [model.remaining, model.spent], `${at}: ${budgetId}`);
      assert.equal(granted, spent + remaining + lapsed, `${at}: ${budgetId}`);
      assert(remaining >= 0 || model.isWatched, `${at}: ${budgetId} has ${remaining}`);
      const [least, most] = model.lapsed;
      assert(
        lapsed >= least && lapsed <= most,
        `${at}: ${lapsed} credits of ${budgetId} lapsed, not ${least} to ${most}`,
      );
      model.lapsed = [lapsed, lapsed];
    }
  }

  /** Makes one random call; returns what it did. */
  async #step(): Promise<string> {
    const budget = this.#one([...this.#budgets.values()]);
    const kind = this.#random.below(100);
    if (budget === undefined || (kind < 8 && this.#budgets.size < BUDGETS_MAX)) return this.#create(budget);
    if (kind < 50) return this.#verify(1);
    if (kind < 58) return this.#verify(CROWD);
    if (kind < 68) return this.#assign(budget);
    if (kind < 84) return this.#updateCredits(budget);
    if (kind < 88) return this.#update(budget);
    return this.#delete(budget);
  }

  #one<T>(all: readonly T[]): T | undefined {
    return all[this.#random.below(Math.max(1, all.length))];
  }

  #refill(): ModelBudget["refill"] {
    if (this.#random.below(2) === 0) return null;
    const amount = 1 + this.#random.below(80);
    return this.#random.below(3) === 0 ? { amount, rollover: 1 + this.#random.below(50) } : { amount };
  }

  async #create(near: ModelBudget | undefined): Promise<string> {
    const parent = near && chain(near).length < LEVELS_MAX && this.#random.below(3) > 0 ? near : undefined;
    const remaining = this.#random.below(100);
    const [refill, isWatched] = [this.#refill(), this.#random.below(4) === 0];
    const { budgetId } = await this.#ok("budgets.createBudget", {
      name: "random",
      remaining,
      ...(refill && { refill: { interval: "daily", ...refill } }),
      ...(isWatched && { onEmpty: "allow" }),
      ...(parent && { parentId: parent.id }),
      thresholds: [50, 100],
    });
    if (parent) parent.children++;
    const empty: Pick<ModelBudget, "spent" | "lapsed" | "children"> = { spent: 0, lapsed: [0, 0], children: 0 };
    this.#budgets.set(budgetId, { id: budgetId, remaining, ...empty, refill, isWatched, parent });
    return `create ${budgetId} below ${parent?.id}`;
  }

  /** Verifies a key, several times at once: as many calls pass as every balance covers, and each charges all or none. */
  async #verify(calls: number): Promise<string> {
    const key = this.#one(this.#keys)!;
    const cost = this.#random.below(25);
    const budgets = new Set([...chain(key.budget), ...chain(key.identity?.budget)]);
    const balances: ModelBalance[] = [...(key.credits ? [key.credits] : []), ...budgets];
    const covered = balances.map(({ remaining, isWatched }) =>
      isWatched || cost === 0 ? calls : Math.floor(remaining / cost),
    );
    const passing = Math.min(calls, ...covered);
    const what = `${calls} calls of ${key.keyId} that cost ${cost}`;
    const answers = await Promise.all(
      Array.from({ length: calls }, () => this.#ok("keys.verifyKey", { key: key.key, credits: { cost } })),
    );
    assert.equal(answers.filter(({ code }) => code === "VALID").length, passing, what);
    assert.equal(answers.filter(({ code }) => code === "USAGE_EXCEEDED").length, calls - passing, what);
    for (const balance of balances) balance.remaining -= passing * cost;
    for (const budget of budgets) budget.spent += passing * cost;
    this.counts.passed += passing;
    this.counts.refused += calls - passing;
    if (calls === 1) {
      const [{ credits, budgets: told = [] }] = answers;
      assert.equal(credits, key.credits?.remaining, what);
      const states = told.map(({ budgetId, remaining }: Record<string, unknown>) => [budgetId, remaining]);
      assert.deepEqual(
        states,
        [...budgets].map(({ id, remaining }) => [id, remaining]),
        what,
      );
    }
    return what;
  }

  async #assign(budget: ModelBudget): Promise<string> {
    const next = this.#random.below(4) === 0 ? undefined : budget;
    const budgetId = next?.id ?? null;
    if (this.#random.below(3) === 0) {
      const identity = this.#one(this.#identities)!;
      identity.budget = next;
      await this.#ok("identities.updateIdentity", { identity: identity.externalId, budgetId });
      return `assign ${budgetId} to ${identity.externalId}`;
    }
    const key = this.#one(this.#keys)!;
    key.budget = next;
    await this.#ok("keys.updateKey", { keyId: key.keyId, budgetId });
    return `assign ${budgetId} to ${key.keyId}`;
  }

  async #updateCredits(budget: ModelBudget): Promise<string> {
    const operation = (["set", "increment", "increment", "decrement"] as const)[this.#random.below(4)]!;
    const value = this.#random.below(60);
    if (operation === "set") budget.remaining = value;
    if (operation === "increment") budget.remaining += value;
    if (operation === "decrement") budget.remaining -= Math.min(value, Math.max(0, budget.remaining));
    await this.#ok("budgets.updateCredits", { budgetId: budget.id, operation, value });
    return `${operation} ${value} of ${budget.id}`;
  }

  async #update(budget: ModelBudget): Promise<string> {
    if (this.#random.below(2) === 0) {
      budget.refill = this.#refill();
      const refill = budget.refill && { interval: "daily", ...budget.refill };
      await this.#ok("budgets.updateBudget", { budgetId: budget.id, refill });
      return `${JSON.stringify(refill)} for ${budget.id}`;
    }
    budget.isWatched = !budget.isWatched;
    if (!budget.isWatched) budget.remaining = Math.max(0, budget.remaining);
    const onEmpty = budget.isWatched ? "allow" : "deny";
    await this.#ok("budgets.updateBudget", { budgetId: budget.id, onEmpty });
    return `${onEmpty} for ${budget.id}`;
  }

  async #delete(budget: ModelBudget): Promise<string> {
    const { id: budgetId, parent } = budget;
    const isUsed = budget.children > 0 || [...this.#keys, ...this.#identities].some((owner) => owner.budget === budget);
    if (isUsed) {
      await this.#server.rejected("budgets.deleteBudget", { budgetId }, "budget_in_use", { as: this.#rootKey });
      return `refused deletion of ${budgetId}`;
    }
    await this.#ok("budgets.deleteBudget", { budgetId });
    this.#budgets.delete(budgetId);
    if (parent) parent.children--;
    return `delete ${budgetId}`;
  }
}

/** A budget with its ancestors. */
function chain(budget: ModelBudget | undefined): ModelBudget[] {
  return budget === undefined ? [] : [budget, ...chain(budget.parent)];
}
