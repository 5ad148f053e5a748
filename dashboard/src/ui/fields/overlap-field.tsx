import { duration } from "../../api/format.ts";
import { Select } from "./select.tsx";

const lengths = [0, 3_600_000, 86_400_000, 604_800_000];

/** How long what is replaced works beside its replacement, until it is changed: a day. */
export const OVERLAP = 86_400_000;

/** Chooses how long what is replaced works beside its replacement, in milliseconds. */
export function OverlapField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: number;
  onChange: (value: number) => void;
}) {
  return (
    <Select
      label={label}
      value={String(value)}
      onChange={(text) => onChange(Number(text))}
      options={lengths.map((length) => ({
        value: String(length),
        label: length === 0 ? "0: it stops at once" : duration(length),
      }))}
    />
  );
}
