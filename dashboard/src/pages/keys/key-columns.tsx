import type { Key } from "@latchkey/sdk";
import type { Column } from "../../ui/data-table.tsx";
import { path, RowLink } from "../../ui/row-link.tsx";
import { Time } from "../../ui/time.tsx";
import { KeyState, keyName } from "./key-state.tsx";
import { RecentUse } from "./recent-use.tsx";

/** The columns of the table of keys. */
export const keyColumns: readonly Column<Key>[] = [
  {
    id: "name",
    header: "Name",
    width: "minmax(9rem, 2fr)",
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
    width: "minmax(6rem, 1fr)",
    cell: ({ apiId, identity }) =>
      identity ? (
        <RowLink
          href={path`/apis/${apiId}?owner=${JSON.stringify(identity.externalId)}`}
          title="Only keys of this owner"
        >
          {identity.externalId}
        </RowLink>
      ) : (
        <span className="text-quiet">–</span>
      ),
  },
  {
    id: "start",
    header: "Key",
    width: "minmax(6.5rem, 1fr)",
    cell: ({ start }) =>
      start === "" ? (
        <span className="text-quiet" title="Imported: known from its first verification on">
          –
        </span>
      ) : (
        <code className="font-mono text-xs">{start}…</code>
      ),
  },
  { id: "state", header: "State", width: "minmax(8.5rem, 1fr)", cell: (key) => <KeyState of={key} /> },
  {
    id: "use",
    header: "36 hours",
    width: "11rem",
    align: "right",
    from: "md",
    card: "none",
    cell: ({ keyId }) => <RecentUse of={{ keyId }} />,
  },
  {
    id: "used",
    header: "Last used",
    width: "6.5rem",
    align: "right",
    cell: ({ lastUsedAt }) =>
      lastUsedAt === undefined ? <span className="text-quiet">never</span> : <Time at={lastUsedAt} relative />,
  },
  {
    id: "created",
    header: "Created",
    width: "6.5rem",
    align: "right",
    from: "lg",
    card: "none",
    cell: ({ createdAt }) => <Time at={createdAt} relative />,
  },
];
