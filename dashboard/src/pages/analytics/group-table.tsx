import { share } from "../../api/stats.ts";
import type { AnalyticsSearch } from "../../layout/searches.ts";
import { Sparkline } from "../../ui/charts/sparkline.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { DataTable } from "../../ui/tables/data-table.tsx";
import { Count } from "../../ui/text/number.tsx";
import type { Group } from "./groups.ts";

/** The parts of the verifications, the largest first. A click shows one alone. */
export function GroupTable({
  of: groups,
  name,
  onNarrow,
}: {
  of: readonly Group[];
  /** What a part is: `Owner`. */
  name: string;
  onNarrow: (narrow: AnalyticsSearch) => void;
}) {
  return (
    <DataTable
      label={name}
      columns={columnsOf(name)}
      rows={groups}
      rowId={({ id }) => id}
      rowLabel={({ label }) => label}
      onOpen={({ narrow }) => onNarrow(narrow)}
    />
  );
}

function columnsOf(header: string): readonly Column<Group>[] {
  return [
    {
      id: "label",
      header,
      width: "minmax(10rem, 2fr)",
      card: "title",
      sort: ({ label }) => label,
      cell: ({ label }) => label,
    },
    {
      id: "use",
      header: "Over time",
      width: "7rem",
      from: "md",
      card: "none",
      cell: ({ label, stats }) => (
        <Sparkline
          values={binned(stats.series.map(({ total }) => total))}
          refused={binned(stats.series.map(({ total, valid }) => total - valid))}
          label={`Verifications of ${label} over time`}
        />
      ),
    },
    {
      id: "total",
      header: "Verifications",
      sort: ({ stats }) => stats.total,
      width: "7rem",
      align: "right",
      cell: ({ stats }) => <Count value={stats.total} />,
    },
    {
      id: "valid",
      header: "Valid",
      sort: ({ stats }) => stats.valid,
      width: "6rem",
      align: "right",
      from: "md",
      cell: ({ stats }) => <Count value={stats.valid} />,
    },
    {
      id: "refused",
      header: "Refused",
      sort: ({ stats }) => (stats.total - stats.valid) / Math.max(1, stats.total),
      width: "6rem",
      align: "right",
      cell: ({ stats }) => share(stats.total - stats.valid, stats.total),
    },
    {
      id: "credits",
      header: "Credits",
      sort: ({ stats }) => stats.creditsSpent,
      width: "6rem",
      align: "right",
      from: "md",
      cell: ({ stats }) => <Count value={stats.creditsSpent} />,
    },
  ];
}

/** At most 36 sums, so that a bar is wide enough to be seen. */
function binned(values: readonly number[]): number[] {
  const size = Math.ceil(values.length / 36);
  const bins: number[] = [];
  for (const [index, value] of values.entries()) {
    const at = Math.floor(index / size);
    bins[at] = (bins[at] ?? 0) + value;
  }
  return bins;
}
