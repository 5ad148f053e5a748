import { useState } from "react";
import { DAY, fieldTime, utcTime } from "../../api/format.ts";
import { Button } from "../../ui/button.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { Dialog } from "../../ui/overlays/dialog.tsx";

/** Statistics by day are kept for two years, unless a setting says otherwise. */
const LENGTH_MAX = 731 * DAY;

/** Chooses a range by its first and its last minute, in the zone of the viewer. */
export function RangeDialog({
  range,
  onClose,
  onChoose,
}: {
  /** The range that is shown now. */
  range: { start: number; end: number };
  onClose: () => void;
  onChoose: (start: number, end: number) => void;
}) {
  const [from, setFrom] = useState(() => fieldTime(range.start));
  const [to, setTo] = useState(() => fieldTime(range.end));
  const [start, end] = [new Date(from).getTime(), new Date(to).getTime()];
  const problem =
    Number.isNaN(start) || Number.isNaN(end)
      ? "Enter both times."
      : start >= end
        ? "The range ends before it begins."
        : end - start > LENGTH_MAX
          ? "Choose two years at most."
          : undefined;
  return (
    <Dialog
      title="Choose a range"
      isOpen
      size="sm"
      onClose={onClose}
      onSubmit={() => problem === undefined && onChoose(start, end)}
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" offBecause={problem}>
            Show range
          </Button>
        </>
      }
    >
      <p className="mb-3 text-quiet">
        Times in {Intl.DateTimeFormat().resolvedOptions().timeZone}. Days are counted in UTC.
      </p>
      <div className="space-y-3">
        <TextField
          label="From"
          type="datetime-local"
          value={from}
          onChange={setFrom}
          description={Number.isNaN(start) ? undefined : utcTime(start)}
        />
        <TextField
          label="To"
          type="datetime-local"
          value={to}
          onChange={setTo}
          problem={problem}
          description={Number.isNaN(end) ? undefined : utcTime(end)}
        />
      </div>
    </Dialog>
  );
}
