import { call, type Endpoint } from "../call.ts";

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

/** The most budgets that a page of the list has. */
const PAGE_MAX = 100;

/**
 * The budgets that an import creates. Each is created once, also by imports that were interrupted or that read the same export
 * into other APIs: budgets are found by `meta.importedFrom`, and are not changed if they exist.
 */
export class ImportedBudgets {
  readonly #endpoint: Endpoint;
  readonly #attempts: { retries: number; waitMax: number; timeout: number };
  #ids: Map<string, string> | undefined;

  constructor(endpoint: Endpoint, attempts: { retries: number; waitMax: number; timeout: number }) {
    this.#endpoint = endpoint;
    this.#attempts = attempts;
  }

  /** The id of a budget, which is created if it does not exist, after its ancestors. */
  async idOf(plan: PlannedBudget): Promise<string> {
    this.#ids ??= await this.#find();
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

  /** The budgets that imports have created, by what they were. */
  async #find(): Promise<Map<string, string>> {
    const ids = new Map<string, string>();
    const attempts = { ...this.#attempts, repeatable: "always" } as const;
    for (let cursor: string | undefined; ; ) {
      const body = JSON.stringify({ limit: PAGE_MAX, ...(cursor && { cursor }) });
      const { data, pagination } = await call(this.#endpoint, "budgets.listBudgets", body, attempts);
      for (const { budgetId, meta } of data ?? []) {
        if (typeof meta?.importedFrom === "string") ids.set(meta.importedFrom, budgetId);
      }
      cursor = pagination?.cursor;
      if (pagination?.hasMore !== true || cursor === undefined) return ids;
    }
  }
}
