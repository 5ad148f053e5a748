import type { Key } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { read, refresh } from "../../api/client.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { Menu } from "../../ui/overlays/menu.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { SelectionBar } from "../../ui/tables/selection-bar.tsx";
import { type BulkChange, changeKey, changeMatching, changeSelected } from "./bulk-change.ts";
import { BulkChangeDialog } from "./bulk-change-dialog.tsx";
import { type BulkJob, BulkRun } from "./bulk-run.tsx";
import { exportKeys } from "./export.ts";
import type { KeysFilter } from "./key-list.ts";
import { keyName } from "./key-state.tsx";

/** What can be done with the selected keys, or with all that match the filters, with progress and a report. */
export function BulkBar({
  filter,
  keys,
  selection,
  areMore,
  onClear,
}: {
  filter: KeysFilter;
  /** The selected keys. */
  keys: readonly Key[];
  /** Their ids. */
  selection: ReadonlySet<string>;
  /** Whether all loaded keys are selected, and more match the filters than are loaded. */
  areMore: boolean;
  onClear: () => void;
}) {
  const [dialog, setDialog] = useState<"change" | "delete">();
  const [job, setJob] = useState<BulkJob>();
  // All keys of this filter are selected, also those that are loaded later, until one of the selection is taken out.
  const [allOf, setAllOf] = useState<{ filter: KeysFilter; selection: ReadonlySet<string> }>();
  const { order: _, orderBy: __, ...counting } = filter;
  const areAllWanted = allOf?.filter === filter && [...allOf.selection].every((id) => selection.has(id));
  const matching = useQuery({ ...read("apis.countKeys", counting), enabled: areMore || areAllWanted });
  const isAll = areAllWanted && matching.data !== undefined;
  const total = isAll ? matching.data.count : keys.length;
  const some = isAll && !matching.data.isComplete ? `all keys (at least ${exactNumber(total)})` : counted(total, "key");
  const start = (verb: string, done: string, change: BulkChange, undo?: (key: Key) => BulkChange) => {
    setDialog(undefined);
    const affected = "enabled" in change ? keys.filter((key) => key.enabled !== change.enabled) : keys;
    if (isAll) return setJob({ title: `${verb} ${some}`, done, total, work: changeMatching(filter, change) });
    if (affected.length === 0) return toast({ text: `All of them are ${done} already.` });
    setJob({
      title: `${verb} ${counted(affected.length, "key")}`,
      done,
      total: affected.length,
      work: changeSelected(affected, (key) => changeKey(key, change)),
      ...(undo && { undo: ({ changed = [] }) => takeBack(changed, undo) }),
    });
  };
  const setEnabled = (enabled: boolean) =>
    start(enabled ? "Enable" : "Disable", enabled ? "enabled" : "disabled", { enabled }, () => ({ enabled: !enabled }));
  const update = `apis.${filter.apiId}.update_key`;
  return (
    <>
      <SelectionBar count={total} onClear={onClear}>
        {areMore && matching.data && !isAll && (
          <Button kind="quiet" onPress={() => setAllOf({ filter, selection })}>
            Select all {exactNumber(matching.data.count)}
            {matching.data.isComplete ? "" : "+"} that match
          </Button>
        )}
        <Button needs={update} onPress={() => setEnabled(true)}>
          Enable
        </Button>
        <Button needs={update} onPress={() => setEnabled(false)}>
          Disable
        </Button>
        <Button needs={update} onPress={() => setDialog("change")}>
          Change…
        </Button>
        <Menu
          label="Export"
          trigger={(opener) => <Button {...opener}>Export</Button>}
          entries={(["csv", "json"] as const).map((format) => ({
            label: `As ${format.toUpperCase()}`,
            onAction: () => void exportKeys(isAll ? filter : keys, format, isAll ? "matching" : "selected"),
          }))}
        />
        <Button kind="danger" needs={`apis.${filter.apiId}.delete_key`} onPress={() => setDialog("delete")}>
          Delete…
        </Button>
      </SelectionBar>
      {dialog === "change" && (
        <BulkChangeDialog
          title={`Change ${some}`}
          onClose={() => setDialog(undefined)}
          onStart={(change) =>
            start(
              "Change",
              "changed",
              change,
              "expires" in change ? ({ expires }) => ({ expires: expires ?? null }) : undefined,
            )
          }
        />
      )}
      <ConfirmDialog
        title={`Delete ${some}`}
        action={`Delete ${some}`}
        typed={String(total)}
        isOpen={dialog === "delete"}
        onClose={() => setDialog(undefined)}
        onConfirm={async () => start("Delete", "deleted", { delete: true })}
      >
        {total === 1 && keys[0] ? `${keyName(keys[0])} stops working at once.` : "They stop working at once."} To stop
        keys for a while, disable them.
      </ConfirmDialog>
      {job && (
        <BulkRun
          {...job}
          onClose={() => {
            setJob(undefined);
            onClear();
          }}
        />
      )}
    </>
  );
}

async function takeBack(changed: readonly Key[], undo: (key: Key) => BulkChange): Promise<void> {
  const work = changeSelected(changed, (key) => changeKey(key, undo(key)));
  const { failed } = await work(
    () => {},
    () => false,
  );
  await refresh();
  if (failed.length > 0) toastError(new Error(`${counted(failed.length, "key")} could not be changed back.`));
}
