import { z } from "zod";
import type { RatelimitOverrideRow } from "../../platform/store/schema.ts";
import { optionalFlag } from "../../platform/vocabulary/columns.ts";
import { OverrideMode, OverrideShadow } from "./fields.ts";

/** An override as the API operations return it. */
export const OverrideOutput = z
  .strictObject({
    overrideId: z.string(),
    namespace: z.string().describe("Name of the namespace."),
    identifier: z.string().describe("An identifier, or a pattern."),
    limit: z.int(),
    duration: z.int().describe("Length of the window in milliseconds."),
    mode: OverrideMode.optional(),
    shadow: OverrideShadow.optional(),
  })
  .meta({ id: "Override", description: "A limit that replaces the limit of calls for an identifier or a pattern." });

export function toOverrideOutput(
  namespace: string,
  row: Pick<RatelimitOverrideRow, "id" | "identifier" | "limit" | "duration" | "mode" | "shadow">,
): z.input<typeof OverrideOutput> {
  const { id, identifier, limit, duration, mode } = row;
  const shadow = optionalFlag(row.shadow);
  return {
    overrideId: id,
    namespace,
    identifier,
    limit,
    duration,
    ...(mode !== null && { mode }),
    ...(shadow !== null && { shadow }),
  };
}
