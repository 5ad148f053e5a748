import { classes } from "../classes.ts";

/** Chooses one of a few options. `value` undefined: none of them is shown. */
export function Segments<Id extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  /** The text of each option. */
  options: Readonly<Record<Id, string>>;
  value: Id | undefined;
  onChange: (value: Id) => void;
}) {
  return (
    <fieldset className="inline-flex rounded-md border border-line p-0.5">
      <legend className="sr-only">{label}</legend>
      {(Object.keys(options) as Id[]).map((id) => (
        <button
          key={id}
          type="button"
          aria-pressed={id === value}
          onClick={() => onChange(id)}
          className={classes(
            "h-6.5 rounded-sm px-2 text-xs tabular-nums hover:bg-hover",
            id === value ? "bg-accent-soft font-medium text-accent" : "text-quiet",
          )}
        >
          {options[id]}
        </button>
      ))}
    </fieldset>
  );
}
