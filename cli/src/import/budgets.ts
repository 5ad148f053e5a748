import { call, type Endpoint } from "../call.ts";
import { findImported, type ImportAttempts } from "./imported.ts";

/** A budget of the other system, as the service will have it. */
export interface PlannedBudget {
  /** What it is in the other system, such as `litellm team search`. The budget has this as `meta.importedFrom`. */
  readonly source: string;
  readonly name: string;
  readonly unit: string;
  readonly remaining: number;
  readonly refill?: { readonly interval: string; readonly amount: number } | undefined;
  readonly parent?: PlannedBudget | undefined;
}

/**
 * The budgets that an import creates. Each is created once, also by imports that were interrupted or that read the same export
 * into other APIs: budgets are found by `meta.importedFrom`, and are not changed if they exist.
 */
export class ImportedBudgets {
  readonly #endpoint: Endpoint;
  readonly #attempts: ImportAttempts;
  #ids: Map<string, string> | undefined;

  constructor(endpoint: Endpoint, attempts: ImportAttempts) {
    this.#endpoint = endpoint;
    this.#attempts = attempts;
  }

  /** The id of a budget, which is created if it does not exist, after its ancestors. */
  async idOf(plan: PlannedBudget): Promise<string> {
    this.#ids ??= await findImported(this.#endpoint, "budgets.listBudgets", "budgetId", this.#attempts);
    const known = this.#ids.get(plan.source);
    if (known !== undefined) return known;
    const { source, parent, ...members } = plan;
    const parentId = parent && (await this.idOf(parent));
    const body = { ...members, ...(parentId && { parentId }), meta: { importedFrom: source } };
    const attempts = { ...this.#attempts, repeatable: "idempotent" } as const;
    const { data } = await call(this.#endpoint, "budgets.createBudget", JSON.stringify(body), attempts);
    this.#ids.set(source, String(data?.budgetId));
    return String(data?.budgetId);
  }
}
