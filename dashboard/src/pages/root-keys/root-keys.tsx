import { useNavigate, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useCallback, useState } from "react";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import type { ListSearch } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { Page } from "../../ui/page.tsx";
import { Filters, SearchField } from "../../ui/tables/filters.tsx";
import { useSearchMembers } from "../../ui/tables/listing.tsx";
import { ListingWithPanel } from "../../ui/tables/listing-with-panel.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { rootKeyColumns } from "./root-key-columns.tsx";
import { CreateRootKey, type Made, MadeRootKey } from "./root-key-dialogs.tsx";
import { RootKeyPanel } from "./root-key-panel.tsx";
import { Sessions } from "./sessions.tsx";

/** The keys that programs and people use to call the service. */
export function RootKeysPage() {
  const { q = "", open } = useSearch({ from: "/shell/root-keys" });
  const navigate = useNavigate({ from: "/root-keys" });
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<Made>();
  const needs = "rootKeys.some.read_root_key";
  const list = useRows("rootKeys.listRootKeys", q === "" ? {} : { search: q }, useCan()(needs));
  const set = useSearchMembers<ListSearch>(navigate);
  const search = useCallback((q: string) => set({ q }, true), [set]);
  const names = new Map((list.rows ?? []).map(({ rootKeyId, name }) => [rootKeyId, name || rootKeyId]));
  const create = (
    <Button kind="primary" needs="rootKeys.*.create_root_key" onPress={() => setCreating(true)}>
      <Plus aria-hidden />
      Create root key
    </Button>
  );
  return (
    <Page
      title="Root keys"
      summary="A root key authenticates a program or a person to this service. End users never see it."
      actions={create}
    >
      <Filters>
        <SearchField label="Search root keys" placeholder="Name or id" value={q} onChange={search} />
      </Filters>
      <ListingWithPanel
        of={list}
        needs={needs}
        label="Root keys"
        columns={open ? rootKeyColumns.filter(({ id }) => !["created", "permissions"].includes(id)) : rootKeyColumns}
        rowId={({ rootKeyId }) => rootKeyId}
        rowLabel={({ name, rootKeyId }) => name || rootKeyId}
        open={open}
        onOpen={(open, replace) => set({ open }, replace)}
        panel={(id, known) => <RootKeyPanel rootKeyId={id} known={known} onMade={setMade} />}
        noMatch={q === "" ? undefined : `No root key matches “${q}”`}
        empty={<EmptyState title="No root keys" action={create} />}
      />
      <div className="mt-8">
        <Sessions names={names} />
      </div>
      {isCreating && <CreateRootKey onClose={() => setCreating(false)} onMade={setMade} />}
      {made && <MadeRootKey of={made} onClose={() => setMade(undefined)} />}
    </Page>
  );
}
