import { type Attempts, call, type Endpoint } from "../call.ts";

/** The most objects that a page of a list has. */
const PAGE_MAX = 100;

/** How calls of an import are repeated. */
export type ImportAttempts = Omit<Attempts, "repeatable">;

/**
 * What imports have created in the service, by what it was in the other system: each object has that as `meta.importedFrom`.
 *
 * @param operation lists the objects, page by page.
 * @param reference the member by which the service knows an object.
 */
export async function findImported(
  endpoint: Endpoint,
  operation: "budgets.listBudgets" | "plans.listPlans",
  reference: "budgetId" | "name",
  attempts: ImportAttempts,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (let cursor: string | undefined; ; ) {
    const body = JSON.stringify({ limit: PAGE_MAX, ...(cursor && { cursor }) });
    const { data, pagination } = await call(endpoint, operation, body, { ...attempts, repeatable: "always" });
    for (const { meta, [reference]: known } of data ?? []) {
      if (typeof meta?.importedFrom === "string") found.set(meta.importedFrom, known);
    }
    cursor = pagination?.cursor;
    if (pagination?.hasMore !== true || cursor === undefined) return found;
  }
}
