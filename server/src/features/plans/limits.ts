import type { DirectoryLimit } from "../../../../engine/src/directory/stored.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import { flag } from "../../platform/vocabulary/columns.ts";
import type { RatelimitSettings } from "../ratelimits/statements/ratelimits.ts";

/** Limits as a plan stores them, in the order of their names. One whose name existed keeps its id. */
export function storedLimits(
  limits: readonly RatelimitSettings[],
  former: readonly DirectoryLimit[],
  random: Random,
): DirectoryLimit[] {
  const ids = new Map(former.map(({ name, id }) => [name, id]));
  return limits
    .map(({ name, limit, duration, mode, autoApply, shadow }) => ({
      id: ids.get(name) ?? newId(random, "rl"),
      name,
      limit,
      duration,
      mode,
      auto_apply: flag(autoApply),
      ...(shadow && { shadow: 1 as const }),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
