import type { ComponentProps, ReactNode } from "react";
import { WithPanel } from "../overlays/panel.tsx";
import { Listing } from "./listing.tsx";

/** A list of the service of which a row opens in a panel. `panel` has the id that is open, and its row if that is loaded. */
export function ListingWithPanel<Row extends object>({
  open,
  onOpen,
  panel,
  ...list
}: Omit<ComponentProps<typeof Listing<Row>>, "openId" | "onOpen"> & {
  open: string | undefined;
  onOpen: (id: string | undefined, replace?: boolean) => void;
  panel: (id: string, row: Row | undefined) => ReactNode;
}) {
  const { rowId, of } = list;
  const rows = of.rows ?? [];
  return (
    <WithPanel
      rowId={rowId}
      open={open}
      onOpen={onOpen}
      panel={
        open !== undefined &&
        panel(
          open,
          rows.find((row) => rowId(row) === open),
        )
      }
    >
      <Listing {...list} openId={open} onOpen={(row) => onOpen(rowId(row), open !== undefined)} />
    </WithPanel>
  );
}
