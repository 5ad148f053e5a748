import type { Key } from "@latchkey/sdk";
import { useEffect, useRef, useState } from "react";
import { call, refresh } from "../../api/client.ts";
import { explain } from "../../api/explain.ts";
import { counted } from "../../api/format.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog, Dialog } from "../../ui/dialog.tsx";
import { ExpiryField } from "../../ui/expiry-field.tsx";
import { TagsField, TextField } from "../../ui/fields.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Select } from "../../ui/select.tsx";
import { SelectionBar } from "../../ui/selection-bar.tsx";
import { toast, toastError } from "../../ui/toast.tsx";
import { exportKeys } from "./export.ts";
import { keyName } from "./key-state.tsx";

const CONCURRENCY = 4;

/** One change of many keys. */
interface Job {
  /** What it does, for the title: `Disable 3 keys`. */
  readonly title: string;
  /** In the past, for the report: `disabled`. */
  readonly done: string;
  readonly run: (key: Key) => Promise<unknown>;
  /** Takes one back. */
  readonly undo?: (key: Key) => Promise<unknown>;
}

interface Report {
  readonly done: readonly Key[];
  readonly failed: readonly { key: Key; reason: string }[];
}

/** What can be done with the selected keys, with progress and a report. */
export function BulkBar({ apiId, keys, onClear }: { apiId: string; keys: readonly Key[]; onClear: () => void }) {
  const [dialog, setDialog] = useState<"change" | "delete">();
  const [job, setJob] = useState<{ job: Job; keys: readonly Key[] }>();
  const start = (job: Job) => {
    setDialog(undefined);
    setJob({ job, keys });
  };
  const setEnabled = (enabled: boolean) => {
    const affected = keys.filter((key) => key.enabled !== enabled);
    if (affected.length === 0) return toast({ text: `All of them are ${enabled ? "enabled" : "disabled"} already.` });
    setJob({
      keys: affected,
      job: {
        title: `${enabled ? "Enable" : "Disable"} ${counted(affected.length, "key")}`,
        done: enabled ? "enabled" : "disabled",
        run: ({ keyId }) => call("keys.updateKey", { keyId, enabled }),
        undo: ({ keyId }) => call("keys.updateKey", { keyId, enabled: !enabled }),
      },
    });
  };
  const deletion: Job = {
    title: `Delete ${counted(keys.length, "key")}`,
    done: "deleted",
    run: ({ keyId }) => call("keys.deleteKey", { keyId }),
  };
  const update = `apis.${apiId}.update_key`;
  return (
    <>
      <SelectionBar count={keys.length} onClear={onClear}>
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
          entries={[
            { label: "As CSV", onAction: () => void exportKeys(keys, "csv", "selected") },
            { label: "As JSON", onAction: () => void exportKeys(keys, "json", "selected") },
          ]}
        />
        <Button kind="danger" needs={`apis.${apiId}.delete_key`} onPress={() => setDialog("delete")}>
          Delete…
        </Button>
      </SelectionBar>
      {dialog === "change" && <ChangeDialog keys={keys} onClose={() => setDialog(undefined)} onStart={start} />}
      <ConfirmDialog
        title={deletion.title}
        action={deletion.title}
        typed={String(keys.length)}
        isOpen={dialog === "delete"}
        onClose={() => setDialog(undefined)}
        onConfirm={async () => start(deletion)}
      >
        {keys.length === 1 ? `${keyName(keys[0]!)} stops working at once.` : "They stop working at once."} This cannot
        be undone. To stop keys for a while, disable them.
      </ConfirmDialog>
      {job && (
        <RunDialog
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

const changes = {
  expires: "Set when they expire",
  role: "Add roles",
  permission: "Add permissions",
  credits: "Add credits",
} as const;

function ChangeDialog({
  keys,
  onClose,
  onStart,
}: {
  keys: readonly Key[];
  onClose: () => void;
  onStart: (job: Job) => void;
}) {
  const [what, setWhat] = useState<keyof typeof changes>("expires");
  const [expires, setExpires] = useState<number>();
  const [names, setNames] = useState<readonly string[]>([]);
  const [credits, setCredits] = useState("1000");
  const title = `Change ${counted(keys.length, "key")}`;
  const amount = Number(credits);
  const problem =
    what === "credits"
      ? !(Number.isInteger(amount) && amount > 0) && "Enter a whole number above 0"
      : what !== "expires" && names.length === 0 && "Enter at least one";
  const start = () =>
    onStart({
      title,
      done: "changed",
      run: ({ keyId, credits: before }) => {
        if (what === "expires") return call("keys.updateKey", { keyId, expires: expires ?? null });
        if (what === "role") return call("keys.addRoles", { keyId, roles: names });
        if (what === "permission") return call("keys.addPermissions", { keyId, permissions: names });
        if (!before) throw new Error("It has unlimited credits.");
        return call("keys.updateCredits", { keyId, operation: "increment", value: amount });
      },
      ...(what === "expires" && {
        undo: ({ keyId, expires }: Key) => call("keys.updateKey", { keyId, expires: expires ?? null }),
      }),
    });
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" onPress={start} offBecause={problem}>
            {title}
          </Button>
        </>
      }
    >
      <Select
        label="What"
        value={what}
        onChange={setWhat}
        options={Object.entries(changes).map(([value, label]) => ({ value: value as keyof typeof changes, label }))}
      />
      {what === "expires" && <ExpiryField value={expires} onChange={setExpires} />}
      {what === "role" && (
        <TagsField label="Roles" description="Names of existing roles." value={names} onChange={setNames} />
      )}
      {what === "permission" && (
        <TagsField label="Permissions" description="Slugs. New ones are created." value={names} onChange={setNames} />
      )}
      {what === "credits" && (
        <TextField label="Credits to add to each" type="number" value={credits} onChange={setCredits} />
      )}
    </Dialog>
  );
}

/** Runs a job, four keys at a time, and reports. */
function RunDialog({ job, keys, onClose }: { job: Job; keys: readonly Key[]; onClose: () => void }) {
  const [report, setReport] = useState<Report>();
  const [count, setCount] = useState(0);
  const isStopped = useRef(false);
  const hasStarted = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a job runs once, whatever changes while it runs.
  useEffect(() => {
    if (hasStarted.current) return;
    hasStarted.current = true;
    void runAll(keys, job.run, setCount, () => isStopped.current).then(async (report) => {
      await refresh();
      if (report.failed.length > 0 || isStopped.current) return setReport(report);
      onClose();
      const { undo } = job;
      toast({
        text: `${counted(report.done.length, "key")} ${job.done}.`,
        ...(undo && {
          undo: async () => {
            const { failed } = await runAll(
              report.done,
              undo,
              () => {},
              () => false,
            );
            await refresh();
            if (failed.length > 0) toastError(new Error(`${counted(failed.length, "key")} could not be changed back.`));
          },
        }),
      });
    });
  }, []);
  return (
    <Dialog
      title={job.title}
      isOpen
      onClose={onClose}
      isDismissable={false}
      size="sm"
      footer={
        report ? (
          <Button kind="primary" onPress={onClose}>
            Close
          </Button>
        ) : (
          <Button
            onPress={() => {
              isStopped.current = true;
            }}
          >
            Stop
          </Button>
        )
      }
    >
      {report ? (
        <>
          <p>
            {counted(report.done.length, "key")} {job.done}, {counted(report.failed.length, "key")} failed
            {report.done.length + report.failed.length < keys.length &&
              `, ${counted(keys.length - report.done.length - report.failed.length, "key")} not touched`}
            .
          </p>
          {report.failed.length > 0 && (
            <ul className="max-h-60 space-y-1 overflow-y-auto">
              {report.failed.map(({ key, reason }) => (
                <li key={key.keyId}>
                  <span className="font-medium">{keyName(key)}</span>: {reason}
                </li>
              ))}
            </ul>
          )}
        </>
      ) : (
        <>
          <progress value={count} max={keys.length} aria-label={job.title} className="h-2 w-full accent-accent" />
          <p className="text-quiet tabular-nums">
            {count} of {keys.length}
          </p>
        </>
      )}
    </Dialog>
  );
}

async function runAll(
  keys: readonly Key[],
  run: (key: Key) => Promise<unknown>,
  onCount: (count: number) => void,
  isStopped: () => boolean,
): Promise<Report> {
  const done: Key[] = [];
  const failed: { key: Key; reason: string }[] = [];
  const waiting = keys.values();
  const work = async () => {
    for (const key of waiting) {
      if (isStopped()) return;
      try {
        await run(key);
        done.push(key);
      } catch (error) {
        failed.push({ key, reason: explain(error).detail });
      }
      onCount(done.length + failed.length);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return { done, failed };
}
