import type { Key } from "@latchkey/sdk";
import type { Column } from "../../ui/tables/column.ts";
import { path, RowLink } from "../../ui/tables/row-link.tsx";
import { Time } from "../../ui/text/time.tsx";
import { KeyState, keyName } from "./key-state.tsx";
import { RecentUse } from "./recent-use.tsx";
import { RestoreButton } from "./restore-button.tsx";

/** The columns of the table of keys. */
export const keyColumns: readonly Column<Key>[] = [
  {
    id: "name",
    header: "Name",
    sort: ({ name }) => name,
    width: "minmax(7rem, 2fr)",
    card: "title",
    cell: (key) => (
      <RowLink
        href={path`/apis/${key.apiId}/keys/${key.keyId}`}
        className={key.name === undefined ? "font-mono text-xs hover:underline" : "font-medium hover:underline"}
        title="Open as a page"
      >
        {keyName(key)}
      </RowLink>
    ),
  },
  {
    id: "owner",
    header: "Owner",
    sort: ({ identity }) => identity?.externalId,
    width: "minmax(5rem, 1.5fr)",
    cell: ({ identity }) =>
      identity ? (
        <RowLink href={path`/identities/${identity.id}`} title="Open the owner">
          {identity.externalId}
        </RowLink>
      ) : (
        <span className="text-quiet">–</span>
      ),
  },
  {
    id: "start",
    header: "Key",
    width: "minmax(6.5rem, 0.25fr)",
    cell: ({ start }) =>
      start === "" ? (
        <span className="text-quiet" title="Imported: known from its first verification on">
          –
        </span>
      ) : (
        <code className="font-mono text-xs">{start}…</code>
      ),
  },
  { id: "state", header: "State", width: "minmax(8rem, 0.5fr)", cell: (key) => <KeyState of={key} /> },
  {
    id: "use",
    header: "36 hours",
    width: "11rem",
    align: "right",
    from: "md",
    card: "none",
    cell: ({ apiId, keyId }) => <RecentUse of={{ apiId, keyId }} />,
  },
  {
    id: "used",
    header: "Last used",
    sort: ({ lastUsedAt }) => lastUsedAt,
    width: "6.5rem",
    align: "right",
    cell: ({ lastUsedAt }) =>
      lastUsedAt === undefined ? <span className="text-quiet">never</span> : <Time at={lastUsedAt} relative />,
  },
  {
    id: "created",
    header: "Created",
    sort: ({ createdAt }) => createdAt,
    width: "6.5rem",
    align: "right",
    from: "lg",
    card: "none",
    cell: ({ createdAt }) => <Time at={createdAt} relative />,
  },
];

/** The columns beside an open panel. */
export const keyColumnsBesidePanel = keyColumns.filter(({ id }) => ["name", "owner", "state", "start"].includes(id));

/** The columns of deleted keys. */
export const deletedKeyColumns: readonly Column<Key>[] = [
  ...keyColumns.filter(({ id }) => ["name", "owner", "start"].includes(id)),
  {
    id: "deleted",
    header: "Deleted",
    sort: ({ deletedAt }) => deletedAt,
    width: "7rem",
    align: "right",
    cell: ({ deletedAt }) => deletedAt !== undefined && <Time at={deletedAt} relative />,
  },
  {
    id: "restore",
    header: "Restore",
    width: "6rem",
    align: "right",
    cell: (key) => <RestoreButton of={key} className="!h-7 !px-2 text-xs" />,
  },
];
