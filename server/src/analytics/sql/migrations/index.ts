import type { MigrationStep } from "../../../store/migrations/index.ts";
import { up as rollups } from "./001-rollups.ts";

/** Every step, in order. A step that has shipped is never edited. */
export const analyticsMigrationSteps: Readonly<Record<string, MigrationStep>> = {
  "001-rollups": rollups,
};
