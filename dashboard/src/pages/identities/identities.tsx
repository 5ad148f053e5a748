import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import type { Entry } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { limitText } from "../../api/limit-text.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Id } from "../../ui/copy-button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { SearchedListing, useSearchChange } from "../../ui/listing.tsx";
import { Page } from "../../ui/page.tsx";
import { CreateIdentity } from "./create-identity.tsx";

type Identity = Entry<"identities.listIdentities">;

/** The owners of keys. */
export function IdentitiesPage() {
  const { q = "" } = useSearch({ from: "/shell/identities" });
  const navigate = useNavigate({ from: "/identities" });
  const [isCreating, setCreating] = useState(false);
  const needs = "identities.some.read_identity";
  const list = useRows("identities.listIdentities", q === "" ? {} : { search: q }, useCan()(needs));
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
        of={list}
        needs={needs}
        columns={columns}
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

const columns: readonly Column<Identity>[] = [
  {
    id: "externalId",
    header: "External id",
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
    width: "minmax(8rem, 1fr)",
    cell: ({ ratelimits }) =>
      ratelimits.length === 0
        ? "–"
        : ratelimits.length === 1
          ? `${ratelimits[0]!.name}: ${limitText(ratelimits[0]!)}`
          : counted(ratelimits.length, "limit"),
  },
];
