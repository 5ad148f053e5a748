import type { RootKey } from "@latchkey/sdk";
import { counted } from "../../api/format.ts";
import { useSession } from "../../api/session.ts";
import type { Column } from "../../ui/tables/column.ts";
import { StatusBadge } from "../../ui/text/status-badge.tsx";
import { Time } from "../../ui/text/time.tsx";
import { KeyState } from "../keys/key-state.tsx";

/** The columns of the table of root keys. */
export const rootKeyColumns: readonly Column<RootKey>[] = [
  {
    id: "name",
    header: "Name",
    sort: ({ name }) => name,
    width: "minmax(9rem, 2fr)",
    card: "title",
    cell: (rootKey) => <Name of={rootKey} />,
  },
  {
    id: "state",
    header: "State",
    width: "10rem",
    cell: (rootKey) => <KeyState of={rootKey} />,
  },
  {
    id: "permissions",
    header: "Permissions",
    sort: ({ permissions }) => permissions.length,
    width: "minmax(9rem, 2fr)",
    from: "md",
    cell: ({ permissions }) =>
      permissions.includes("*") ? (
        <StatusBadge tone="warn">Everything</StatusBadge>
      ) : permissions.length === 1 ? (
        <code className="font-mono text-xs">{permissions[0]}</code>
      ) : (
        <span title={permissions.join("\n")}>{counted(permissions.length, "permission")}</span>
      ),
  },
  {
    id: "used",
    header: "Last used",
    sort: ({ lastUsedAt }) => lastUsedAt,
    width: "8rem",
    cell: ({ lastUsedAt }) => (lastUsedAt === undefined ? "never" : <Time at={lastUsedAt} relative />),
  },
  {
    id: "created",
    header: "Created",
    sort: ({ createdAt }) => createdAt,
    width: "8rem",
    from: "lg",
    card: "none",
    cell: ({ createdAt }) => <Time at={createdAt} relative />,
  },
];

function Name({ of: { rootKeyId, name } }: { of: RootKey }) {
  const { rootKey } = useSession();
  return (
    <span className="flex min-w-0 items-center gap-2">
      <span className="truncate font-medium">{name || rootKeyId}</span>
      {rootKey.keyId === rootKeyId && <span className="shrink-0 text-xs text-quiet">this session</span>}
    </span>
  );
}
