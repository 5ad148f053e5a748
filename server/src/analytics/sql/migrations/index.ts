import type { MigrationStep } from "../../../store/migrations/index.ts";
import { up as rollups } from "./001-rollups.ts";

/** All steps, in order. A step is not edited after its release. */
export const analyticsMigrationSteps: Readonly<Record<string, MigrationStep>> = {
  "001-rollups": rollups,
};
