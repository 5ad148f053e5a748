import { z } from "zod";
import type { RatelimitOverrideRow } from "../../store/schema.ts";

/** An override as it is shown. */
export const OverrideOutput = z
  .strictObject({
    overrideId: z.string(),
    namespace: z.string().describe("Name of the namespace."),
    identifier: z.string().describe("An identifier, or a pattern."),
    limit: z.int(),
    duration: z.int().describe("Length of the window in milliseconds."),
  })
  .meta({ id: "Override", description: "What holds for some identifiers of a namespace." });

export function overrideRecord(
  namespace: string,
  { id, identifier, limit, duration }: Pick<RatelimitOverrideRow, "id" | "identifier" | "limit" | "duration">,
): z.input<typeof OverrideOutput> {
  return { overrideId: id, namespace, identifier, limit, duration };
}
