import { DAY, fieldTime, utcTime } from "../../api/format.ts";
import { Button } from "../button.tsx";
import { TextField } from "./fields.tsx";

const presets = [
  ["7 days", 7],
  ["30 days", 30],
  ["90 days", 90],
  ["1 year", 365],
] as const;

/** When something expires, in the zone of the viewer. Undefined: never. */
export function ExpiryField({
  value,
  onChange,
  description,
}: {
  value: number | undefined;
  onChange: (value: number | undefined) => void;
  description?: string | undefined;
}) {
  return (
    <div>
      <TextField
        label="Expires"
        type="datetime-local"
        description={value === undefined ? `${description ?? ""} Empty: never.`.trim() : utcTime(value)}
        value={value === undefined ? "" : fieldTime(value)}
        onChange={(text) => onChange(text === "" ? undefined : new Date(text).getTime())}
        problem={value !== undefined && value <= Date.now() ? "This time is in the past." : undefined}
      />
      <div className="mt-2 flex flex-wrap gap-1.5">
        {presets.map(([label, days]) => (
          <Button
            key={label}
            className="!h-7 !px-2 text-xs"
            onPress={() => onChange(nextMinute(Date.now() + days * DAY))}
          >
            {label}
          </Button>
        ))}
        <Button className="!h-7 !px-2 text-xs" onPress={() => onChange(undefined)}>
          Never
        </Button>
      </div>
    </div>
  );
}

function nextMinute(time: number): number {
  return Math.ceil(time / 60_000) * 60_000;
}
