import { z } from "zod";
import type { RatelimitOverrideRow } from "../../store/schema.ts";

/** An override as the API operations return it. */
export const OverrideOutput = z
  .strictObject({
    overrideId: z.string(),
    namespace: z.string().describe("Name of the namespace."),
    identifier: z.string().describe("An identifier, or a pattern."),
    limit: z.int(),
    duration: z.int().describe("Length of the window in milliseconds."),
  })
  .meta({ id: "Override", description: "A limit that replaces the limit of calls for an identifier or a pattern." });

export function toOverrideOutput(
  namespace: string,
  { id, identifier, limit, duration }: Pick<RatelimitOverrideRow, "id" | "identifier" | "limit" | "duration">,
): z.input<typeof OverrideOutput> {
  return { overrideId: id, namespace, identifier, limit, duration };
}
