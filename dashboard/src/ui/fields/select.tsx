import { ChevronDown } from "lucide-react";
import { useId } from "react";
import { classes } from "../classes.ts";
import { box } from "./fields.tsx";

/** A choice of one. It is an element of the browser, which has its own list on each device. */
export function Select<Value extends string>({
  label,
  value,
  onChange,
  options,
}: {
  label: string;
  value: Value;
  onChange: (value: Value) => void;
  options: readonly { value: Value; label: string }[];
}) {
  const id = useId();
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="label">
        {label}
      </label>
      <span className="relative">
        <select
          id={id}
          value={value}
          onChange={({ target }) => onChange(target.value as Value)}
          className={classes(box, "h-8 appearance-none truncate !pr-8")}
        >
          {options.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <ChevronDown aria-hidden className="pointer-events-none absolute top-2 right-2.5 size-4 text-quiet" />
      </span>
    </div>
  );
}
