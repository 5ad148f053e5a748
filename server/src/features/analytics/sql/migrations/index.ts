import { expand, type MigrationStep, type SchemaStep } from "../../../../platform/store/migrations/index.ts";
import { up as rollups } from "./001-rollups.ts";
import { up as usage } from "./002-usage.ts";
import { up as partitions } from "./003-partitions.ts";
import { up as decisions } from "./004-decisions.ts";
import { up as segments } from "./005-segments.ts";
import { up as runs } from "./006-runs.ts";

/** The steps of the first releases, in order. Complete, and never edited. */
export const firstAnalyticsSteps: Readonly<Record<string, MigrationStep>> = {
  "001-rollups": rollups,
};

/** Every later step, in order. A step that has shipped is never edited. */
export const analyticsSteps: Readonly<Record<string, SchemaStep>> = {
  "002-usage": expand(usage),
  "003-partitions": expand(partitions),
  "004-decisions": expand(decisions),
  "005-segments": expand(segments),
  "006-runs": expand(runs),
};
