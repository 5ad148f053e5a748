import { addressNetwork } from "../../../../engine/src/rules/address.ts";
import type { Problem, ProblemCode } from "./problems.ts";

/** The problems of credentials that do not exist, are malformed, or may no longer be used. */
const FAILURES: ReadonlySet<ProblemCode> = new Set<ProblemCode>([
  "authentication_failed",
  "authentication_malformed",
  "root_key_disabled",
  "root_key_expired",
  "workspace_disabled",
]);

/** Whether a call failed because of its credential. */
export function isAuthenticationProblem(code: ProblemCode): boolean {
  return FAILURES.has(code) || code === "authentication_missing";
}

/** A request whose credential was refused. It contains nothing of the credential. */
export interface FailedAuthentication {
  readonly address: string;
  /** The path of an operation or a route, never one that the caller invented. */
  readonly path: string;
  readonly requestId: string;
  readonly problem: ProblemCode;
  /** The workspace whose root key it was; null: the credential belongs to none. */
  readonly workspaceId: string | null;
}

/** Requests that failed alike. The members are those of the last one. */
export interface FailedAuthenticationsFrom extends FailedAuthentication {
  /** The network of the address: see `addressNetwork`. */
  readonly network: string;
  readonly failures: number;
}

/** Sources that are told apart. Further ones count together. */
const SOURCES_MAX = 1_000;
export const OTHERS = "others";

/** Collects failed authentications until they are reported. Bounded, whoever sends them. */
export class FailedAuthentications {
  #sources = new Map<string, FailedAuthenticationsFrom>();

  /** Adds a request, if this problem is that of its credential. */
  add({ code, workspaceId }: Problem, { address, path }: { address: string; path: string }, requestId: string): void {
    if (!FAILURES.has(code)) return;
    const network = addressNetwork(address);
    this.#add({ network, address, path, requestId, problem: code, workspaceId: workspaceId ?? null, failures: 1 });
  }

  /** Returns what was collected since the last call. */
  take(): FailedAuthenticationsFrom[] {
    const taken = [...this.#sources.values()];
    if (taken.length > 0) this.#sources = new Map();
    return taken;
  }

  /** Adds what another thread collected. */
  adopt(taken: readonly FailedAuthenticationsFrom[]): void {
    for (const failed of taken) this.#add(failed);
  }

  #add(failed: FailedAuthenticationsFrom): void {
    const name = `${failed.network} ${failed.problem} ${failed.workspaceId}`;
    const known = this.#sources.get(name);
    if (known !== undefined || this.#sources.size < SOURCES_MAX) {
      this.#sources.set(name, { ...failed, failures: failed.failures + (known?.failures ?? 0) });
      return;
    }
    const failures = failed.failures + (this.#sources.get(OTHERS)?.failures ?? 0);
    this.#sources.set(OTHERS, { ...failed, network: OTHERS, workspaceId: null, failures });
  }
}
