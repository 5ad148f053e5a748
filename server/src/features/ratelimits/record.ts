import { z } from "zod";
import type { Override } from "../../../../engine/src/rules/override-patterns.ts";
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

type Shown = Pick<Override, "id" | "identifier" | "limit" | "duration" | "mode" | "shadow">;

export function toOverrideOutput(namespace: string, override: Shown): z.input<typeof OverrideOutput> {
  const { overrideId, ...members } = overrideMembers(override);
  return { overrideId, namespace, ...members };
}

/** An override without the name of its namespace. */
export function overrideMembers({ id, identifier, limit, duration, mode, shadow }: Shown) {
  return {
    overrideId: id,
    identifier,
    limit,
    duration,
    ...(mode !== null && { mode }),
    ...(shadow !== null && { shadow }),
  };
}
