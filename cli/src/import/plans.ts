import { call, type Endpoint, ServiceError } from "../call.ts";
import { CommandError } from "../output.ts";
import { findImported, type ImportAttempts } from "./imported.ts";

/** A plan of the other system, as the service will have it. */
export interface PlannedPlan {
  /** What it is in the other system, such as `aws usage plan c7y23b`. The plan has this as `meta.importedFrom`. */
  readonly source: string;
  /** Its name there. */
  readonly name: string;
  readonly ratelimits: readonly object[];
}

const NAME_LENGTH_MAX = 64;
/** Plans of the service that can have the name of an imported one. */
const SAME_NAMES_MAX = 100;

/**
 * The plans that an import creates. Each is created once, also by imports that were interrupted or that read the same export
 * into other APIs: plans are found by `meta.importedFrom`, and are not changed if they exist.
 */
export class ImportedPlans {
  readonly #endpoint: Endpoint;
  readonly #attempts: ImportAttempts;
  #names: Map<string, string> | undefined;

  constructor(endpoint: Endpoint, attempts: ImportAttempts) {
    this.#endpoint = endpoint;
    this.#attempts = attempts;
  }

  /** The name of a plan in the service, which is created if it does not exist. */
  async nameOf({ source, name, ratelimits }: PlannedPlan): Promise<string> {
    this.#names ??= await findImported(this.#endpoint, "plans.listPlans", "name", this.#attempts);
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
}

/** A name that the service accepts: other characters become hyphens. */
export function planName(name: string, end = ""): string {
  const plain = name.replaceAll(/[^a-zA-Z0-9_.-]+/g, "-").replace(/^plan_/, "plan-") || "plan";
  return plain.slice(0, NAME_LENGTH_MAX - end.length) + end;
}
