import { type Attempts, call, type Endpoint, ServiceError } from "../call.ts";
import { CommandError } from "../output.ts";

/** A plan of the other system, as the service will have it. */
export interface PlannedPlan {
  /** What it is in the other system, such as `aws usage plan c7y23b`. The plan has this as `meta.importedFrom`. */
  readonly source: string;
  /** Its name there. */
  readonly name: string;
  readonly ratelimits: readonly object[];
}

/** The most plans that a page of the list has. */
const PAGE_MAX = 100;
const NAME_LENGTH_MAX = 64;
/** Plans of the service that can have the name of an imported one. */
const SAME_NAMES_MAX = 100;

/**
 * The plans that an import creates. Each is created once, also by imports that were interrupted or that read the same export
 * into other APIs: plans are found by `meta.importedFrom`, and are not changed if they exist.
 */
export class ImportedPlans {
  readonly #endpoint: Endpoint;
  readonly #attempts: Omit<Attempts, "repeatable">;
  #names: Map<string, string> | undefined;

  constructor(endpoint: Endpoint, attempts: Omit<Attempts, "repeatable">) {
    this.#endpoint = endpoint;
    this.#attempts = attempts;
  }

  /** The name of a plan in the service, which is created if it does not exist. */
  async nameOf({ source, name, ratelimits }: PlannedPlan): Promise<string> {
    this.#names ??= await this.#find();
    const known = this.#names.get(source);
    if (known !== undefined) return known;
    const attempts = { ...this.#attempts, repeatable: "idempotent" } as const;
    for (let count = 1; count <= SAME_NAMES_MAX; count++) {
      const own = planName(name, count === 1 ? "" : `-${count}`);
      const body = { name: own, ratelimits, meta: { importedFrom: source } };
      try {
        await call(this.#endpoint, "plans.createPlan", JSON.stringify(body), attempts);
      } catch (error) {
        if (error instanceof ServiceError && error.type === "data/plan_already_exists") continue;
        throw error;
      }
      this.#names.set(source, own);
      return own;
    }
    throw new CommandError(`${SAME_NAMES_MAX} plans have the name of the ${source}. Rename it in the export.`);
  }

  /** The plans that imports have created, by what they were. */
  async #find(): Promise<Map<string, string>> {
    const names = new Map<string, string>();
    const attempts = { ...this.#attempts, repeatable: "always" } as const;
    for (let cursor: string | undefined; ; ) {
      const body = JSON.stringify({ limit: PAGE_MAX, ...(cursor && { cursor }) });
      const { data, pagination } = await call(this.#endpoint, "plans.listPlans", body, attempts);
      for (const { name, meta } of data ?? []) {
        if (typeof meta?.importedFrom === "string") names.set(meta.importedFrom, name);
      }
      cursor = pagination?.cursor;
      if (pagination?.hasMore !== true || cursor === undefined) return names;
    }
  }
}

/** A name that the service accepts: other characters become hyphens. */
export function planName(name: string, end = ""): string {
  const plain = name.replaceAll(/[^a-zA-Z0-9_.-]+/g, "-").replace(/^plan_/, "plan-") || "plan";
  return plain.slice(0, NAME_LENGTH_MAX - end.length) + end;
}
