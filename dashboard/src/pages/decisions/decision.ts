import type { Entry, Input } from "../../api/client.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { windowText } from "../../api/limit-text.ts";
import type { DecisionsSearch } from "../../layout/searches.ts";
import { rangeStart } from "../../ui/fields/range.tsx";

export type Decision = Entry<"analytics.listDecisions">;
export type DecisionFilter = Omit<Input<"analytics.listDecisions">, "cursor" | "limit">;

/** The members of the input by the beginning of an id. */
const members = { key_: "keyId", api_: "apiId", id_: "identityId", rlns_: "namespaceId", req_: "requestId" } as const;

/** The filter for decisions about a resource or a request; undefined for another text. */
export function aboutFilter(id: string): DecisionFilter | undefined {
  const found = Object.entries(members).find(([start]) => id.startsWith(start));
  return found && { [found[1]]: id };
}

/** The input that the members of the address ask for. */
export function filterOf({ range, outcome, code, about }: DecisionsSearch): DecisionFilter {
  const start = range && rangeStart(range);
  return {
    ...(start !== undefined && { start }),
    ...(outcome === "refused" && { refused: true }),
    ...(code !== undefined ? { codes: [code] } : outcome === "passed" && { codes: ["VALID", "PASSED"] }),
    ...(about !== undefined && aboutFilter(about)),
  };
}

/** The code as the charts have it. */
export function markOf({ code }: Pick<Decision, "code">): string {
  return code === "PASSED" || code === "DENIED" ? code.toLowerCase() : code;
}

/** What decided, in a few words. */
export function reasonOf({ limit, creditsSpent, cost, kind, code }: Decision): string {
  if (kind === "ratelimit") {
    const { limit: most = 0, duration = 0 } = limit ?? {};
    return `cost ${exactNumber(cost)} of ${windowText({ limit: most, duration })}`;
  }
  if (limit?.name !== undefined) return `limit “${limit.name}”`;
  if (code === "USAGE_EXCEEDED") return `needs ${cost} credits`;
  return creditsSpent ? `${creditsSpent} credits spent` : "";
}

/** The number of refusals of the same kind that are not rows. */
export function leftOutOf({ leftOut = 0, leftOutOfOthers = 0 }: Decision): number {
  return leftOut + leftOutOfOthers;
}

/** The words for decisions that a row stands for. */
export function leftOutWords(decision: Decision): string | undefined {
  const { leftOut = 0, leftOutOfOthers = 0 } = decision;
  if (leftOut > 0) return `${counted(leftOut, "more refusal")} of this kind before it in the same minute`;
  return leftOutOfOthers > 0 ? `${counted(leftOutOfOthers, "more refusal")} of other keys and namespaces` : undefined;
}
