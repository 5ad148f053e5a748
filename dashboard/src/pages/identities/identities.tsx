import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { type Entry, read } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { limitText } from "../../api/limit-text.ts";
import { type Rows, useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Page } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { SearchedListing, useSearchChange } from "../../ui/tables/searched-listing.tsx";
import type { TableOrder } from "../../ui/tables/table-order.ts";
import { Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { CreateIdentity } from "./create-identity.tsx";

type Identity = Entry<"identities.listIdentities">;

/** The owners of keys. */
export function IdentitiesPage() {
  const { q = "" } = useSearch({ from: "/shell/identities" });
  const [order, setOrder] = useState<TableOrder>();
  const navigate = useNavigate({ from: "/identities" });
  const [isCreating, setCreating] = useState(false);
  const needs = "identities.some.read_identity";
  const isAllowed = useCan()(needs);
  const list = useRows(
    "identities.listIdentities",
    { ...(q !== "" && { search: q }), ...(order && { orderBy: "externalId", order: order.direction }) },
    isAllowed,
  );
  const named = useQuery({ ...read("identities.getIdentity", { identity: q }), enabled: isAllowed && q !== "" });
  const onSearch = useSearchChange(navigate);
  const create = (
    <Button kind="primary" needs="identities.*.create_identity" onPress={() => setCreating(true)}>
      <Plus aria-hidden />
      Create identity
    </Button>
  );
  return (
    <Page
      title="Identities"
      summary="An identity is an owner of keys, such as a user or a company. Its keys share its limits."
      actions={create}
    >
      <SearchedListing
        one="identity"
        many="identities"
        placeholder="External id or id"
        search={q}
        onSearch={onSearch}
        of={withFirst(named.data, list)}
        needs={needs}
        columns={columns}
        serviceOrders={["externalId"]}
        order={order}
        onOrder={setOrder}
        rowId={({ id }) => id}
        rowLabel={({ externalId }) => externalId}
        onOpen={({ id }) => void navigate({ to: "/identities/$identityId", params: { identityId: id } })}
        empty={
          <EmptyState title="No identities yet" action={create}>
            <p>
              A key that is created with an externalId gets its identity by itself. Create one here to give it limits
              and metadata first.
            </p>
          </EmptyState>
        }
      />
      {isCreating && (
        <CreateIdentity
          onClose={() => setCreating(false)}
          onCreated={(identityId) => void navigate({ to: "/identities/$identityId", params: { identityId } })}
        />
      )}
    </Page>
  );
}

/** The list, beginning with the identity that the search names exactly: it can be on a later page. */
function withFirst(first: Identity | undefined, list: Rows<Identity>): Rows<Identity> {
  if (!first || !list.rows) return list;
  return { ...list, rows: [first, ...list.rows.filter(({ id }) => id !== first.id)] };
}

const columns: readonly Column<Identity>[] = [
  {
    id: "externalId",
    header: "External id",
    sort: ({ externalId }) => externalId,
    width: "minmax(10rem, 2fr)",
    card: "title",
    cell: ({ id, externalId }) => (
      <Link
        to="/identities/$identityId"
        params={{ identityId: id }}
        tabIndex={-1}
        className="truncate font-medium hover:underline"
      >
        {externalId}
      </Link>
    ),
  },
  { id: "id", header: "Id", width: "minmax(13rem, 1fr)", from: "md", cell: ({ id }) => <Id id={id} /> },
  {
    id: "meta",
    header: "Metadata",
    width: "minmax(8rem, 2fr)",
    card: "none",
    cell: ({ meta }) =>
      Object.keys(meta).length === 0 ? "–" : <code className="font-mono text-xs">{JSON.stringify(meta)}</code>,
  },
  {
    id: "limits",
    header: "Limits",
    sort: ({ ratelimits }) => ratelimits.length,
    width: "minmax(8rem, 1fr)",
    cell: ({ ratelimits }) =>
      ratelimits.length === 0
        ? "–"
        : ratelimits.length === 1
          ? `${ratelimits[0]!.name}: ${limitText(ratelimits[0]!)}`
          : counted(ratelimits.length, "limit"),
  },
];
