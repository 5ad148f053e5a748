import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { read } from "../../api/client.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Page } from "../../ui/page.tsx";

export function KeysPage() {
  const { apiId } = useParams({ from: "/shell/apis/$apiId" });
  const { data } = useQuery(read("apis.listKeys", { apiId }));
  return (
    <Page title="Keys">
      <DataTable
        label="Keys"
        columns={[{ id: "name", header: "Name", cell: ({ name }) => name ?? "–", width: "1fr" }]}
        rows={data ?? []}
        rowId={({ keyId }) => keyId}
        rowLabel={({ name, keyId }) => name ?? keyId}
      />
    </Page>
  );
}
