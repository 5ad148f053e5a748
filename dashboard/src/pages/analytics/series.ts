import { categoryColors, type Series } from "../../ui/charts/series.ts";
import type { Group } from "./groups.ts";

const PARTS_MAX = categoryColors.length;

/** The largest groups, and the sum of the others. Groups by tag overlap, so they have no sum. */
export function seriesOf(ranked: readonly Group[], overlaps: boolean): Series[] {
  const shown = ranked.length > PARTS_MAX ? ranked.slice(0, PARTS_MAX - 1) : ranked;
  const others = ranked.slice(shown.length);
  const series = shown.map(({ label, stats }, index) => ({
    label,
    color: categoryColors[index]!,
    values: stats.series.map(({ total }) => total),
  }));
  if (others.length === 0 || overlaps) return series;
  const values = others[0]!.stats.series.map((_, at) =>
    others.reduce((sum, { stats }) => sum + (stats.series[at]?.total ?? 0), 0),
  );
  return [...series, { label: `${others.length} others`, color: categoryColors[PARTS_MAX - 1]!, values }];
}
