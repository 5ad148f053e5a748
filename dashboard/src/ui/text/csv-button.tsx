import { useState } from "react";
import { exactNumber } from "../../api/format.ts";
import { toast, toastError } from "../overlays/toast.tsx";

/** Saves what is shown as a file of comma-separated values. */
export function CsvButton({ label, onSave }: { label: string; onSave: () => Promise<number | undefined> }) {
  const [isSaving, setIsSaving] = useState(false);
  const save = async () => {
    setIsSaving(true);
    try {
      const cutAt = await onSave();
      if (cutAt !== undefined)
        toast({ text: `Saved the first ${exactNumber(cutAt)} rows: a file has no more. Filter the list for others.` });
    } catch (error) {
      toastError(error);
    } finally {
      setIsSaving(false);
    }
  };
  return (
    <button
      type="button"
      disabled={isSaving}
      aria-label={`CSV of ${label}`}
      title="Save as CSV"
      className="rounded-sm text-xs text-quiet hover:underline"
      onClick={() => void save()}
    >
      {isSaving ? "Saving…" : "CSV"}
    </button>
  );
}
