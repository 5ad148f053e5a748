import type { MigrationStep } from "../../../store/migrations/index.ts";
import { up as rollups } from "./001-rollups.ts";
import { up as usage } from "./002-usage.ts";

/** All steps, in order. A step is not edited after its release. */
export const analyticsMigrationSteps: Readonly<Record<string, MigrationStep>> = {
  "001-rollups": rollups,
  "002-usage": usage,
};
