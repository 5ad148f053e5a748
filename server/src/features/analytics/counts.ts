import type { AnswerContext } from "../../platform/rpc/operation.ts";
import type { Services } from "../services.ts";
import type { StatsQuery } from "./rollups.ts";

/** The statistics to answer with, and the members of the answer besides the counts. */
export interface Counted {
  readonly members: object;
  readonly query: Omit<StatsQuery, "workspaceId">;
}

/** Answers with counts, as JSON text: a range can have ten thousand buckets. */
export async function answerCounts(
  { members, query }: Counted,
  { analytics }: Pick<Services, "analytics">,
  context: AnswerContext<never>,
): Promise<string> {
  return `{${JSON.stringify(members).slice(1, -1)},${await analytics.count(query, context)}}`;
}
