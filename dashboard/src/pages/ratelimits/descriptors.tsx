import { useQuery } from "@tanstack/react-query";
import type { DescriptorNode } from "../../../../engine/src/rules/descriptor-node.ts";
import { read } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";
import type { Column } from "../../ui/tables/column.ts";
import { DataTable } from "../../ui/tables/data-table.tsx";
import { Loading } from "../../ui/text/loading.tsx";

/** A descriptor with the keys and values that lead to it. */
interface Row {
  readonly path: string;
  readonly limit: string;
  readonly counts: string;
}

/** Descriptors that are listed. */
const ROWS_MAX = 500;

const columns: readonly Column<Row>[] = [
  {
    id: "path",
    header: "Descriptor",
    width: "minmax(10rem, 3fr)",
    card: "title",
    cell: ({ path }) => <code className="font-mono text-xs">{path}</code>,
  },
  { id: "limit", header: "Limit", width: "minmax(7rem, 1fr)", cell: ({ limit }) => limit },
  { id: "counts", header: "Counts", width: "minmax(8rem, 1fr)", from: "md", cell: ({ counts }) => counts },
];

/** The tree of limits that Envoy's rate limit service applies in a namespace. */
export function Descriptors({ namespaceId }: { namespaceId: string }) {
  const needs = `ratelimits.${namespaceId}.read_override`;
  const isAllowed = useCan()(needs);
  const found = useQuery({ ...read("ratelimits.getDescriptors", { namespace: namespaceId }), enabled: isAllowed });
  if (!isAllowed) return <p className="text-quiet">The descriptors need the permission {needs}.</p>;
  const { data } = found;
  if (found.error || !data) return <Loading of={found} lines={3} />;
  const rows = rowsOf(data.descriptors as unknown as readonly DescriptorNode[]);
  if (rows.length === 0) {
    return (
      <p className="text-quiet">
        None. Envoy’s rate limit service applies them:{" "}
        <code className="font-mono text-xs">ratelimits.setDescriptors</code> or{" "}
        <code className="font-mono text-xs">latchkey apply</code> sets them.
      </p>
    );
  }
  return (
    <>
      <DataTable
        label="Descriptors"
        columns={columns}
        rows={rows.slice(0, ROWS_MAX)}
        rowId={({ path }) => path}
        rowLabel={({ path }) => path}
      />
      {rows.length > ROWS_MAX && (
        <p className="mt-2 text-quiet">
          The first {ROWS_MAX} of {rows.length.toLocaleString("en")}.
        </p>
      )}
      {data.atomic && <p className="mt-2 text-quiet">A call charges all its descriptors or none.</p>}
    </>
  );
}

function rowsOf(nodes: readonly DescriptorNode[], before = ""): Row[] {
  return nodes.flatMap((node) => {
    const path = before + (node.value ? `${node.key}=${node.value}` : node.key);
    return [{ path, limit: limitOf(node), counts: countsOf(node) }, ...rowsOf(node.descriptors ?? [], `${path} › `)];
  });
}

function limitOf({ rate_limit: limit }: DescriptorNode): string {
  if (!limit) return "–";
  return limit.unlimited ? "unlimited" : `${limit.requests_per_unit?.toLocaleString("en")} per ${limit.unit}`;
}

function countsOf({ value, rate_limit: limit, shadow_mode, quota_mode, share_threshold }: DescriptorNode): string {
  if (!limit || limit.unlimited) return "–";
  const isOpen = !value || value.endsWith("*");
  return [
    isOpen && !share_threshold ? "each value apart" : "together",
    ...(shadow_mode ? ["denies nothing"] : []),
    ...(quota_mode ? ["a quota"] : []),
  ].join(", ");
}
