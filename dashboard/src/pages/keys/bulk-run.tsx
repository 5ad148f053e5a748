import { useEffect, useRef, useState } from "react";
import { refresh } from "../../api/client.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/overlays/dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { useUnsaved } from "../../ui/unsaved.ts";
import type { BulkReport, BulkWork } from "./bulk-change.ts";

/** A change of many keys that runs. */
export interface BulkJob {
  /** What it does, for the title: `Disable 3 keys`. */
  readonly title: string;
  /** In the past, for the report: `disabled`. */
  readonly done: string;
  /** The number of keys. */
  readonly total: number;
  readonly work: BulkWork;
  /** Takes back what the report says. */
  readonly undo?: (report: BulkReport) => Promise<void>;
}

const FAILED_SHOWN = 100;

/** Runs a job, and reports. */
export function BulkRun({ title, done, total, work, undo, onClose }: BulkJob & { onClose: () => void }) {
  const [running, setRunning] = useState<BulkWork>(() => work);
  const [report, setReport] = useState<BulkReport>();
  const [count, setCount] = useState(0);
  const isStopped = useRef(false);
  const started = useRef<BulkWork>(undefined);
  useUnsaved(report === undefined);
  useEffect(
    () => () => {
      isStopped.current = true;
    },
    [],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: a job runs once, whatever changes while it runs.
  useEffect(() => {
    if (started.current === running) return;
    started.current = running;
    isStopped.current = false;
    void running(setCount, () => isStopped.current).then(async (report) => {
      await refresh();
      if (report.failed.length > 0 || report.rest || isStopped.current) return setReport(report);
      onClose();
      toast({
        text: `${counted(report.done, "key")} ${done}.`,
        ...(undo && { undo: () => undo(report) }),
      });
    });
  }, [running]);
  const { rest } = report ?? {};
  const left = report ? Math.max(0, total - report.done - report.failed.length) : 0;
  return (
    <Dialog
      title={title}
      isOpen
      onClose={onClose}
      isDismissable={false}
      size="sm"
      footer={
        report ? (
          <>
            {rest && (
              <Button
                onPress={() => {
                  setReport(undefined);
                  setRunning(() => rest);
                }}
              >
                Continue
              </Button>
            )}
            <Button kind="primary" onPress={onClose}>
              Close
            </Button>
          </>
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
            {counted(report.done, "key")} {done}, {counted(report.failed.length, "key")} failed
            {left > 0 && `, ${counted(left, "key")} not touched`}.
          </p>
          {report.error !== undefined && <ErrorBox error={report.error} />}
          {report.failed.length > 0 && (
            <ul className="max-h-60 space-y-1 overflow-y-auto">
              {report.failed.slice(0, FAILED_SHOWN).map(({ name, reason }, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: names of keys repeat, and the list does not change.
                <li key={index}>
                  <span className="font-medium">{name}</span>: {reason}
                </li>
              ))}
              {report.failed.length > FAILED_SHOWN && (
                <li className="text-quiet">And {exactNumber(report.failed.length - FAILED_SHOWN)} more.</li>
              )}
            </ul>
          )}
        </>
      ) : (
        <>
          <progress value={count} max={total} aria-label={title} className="h-2 w-full accent-accent" />
          <p className="text-quiet tabular-nums">
            {exactNumber(count)} of {exactNumber(total)}
          </p>
        </>
      )}
    </Dialog>
  );
}
