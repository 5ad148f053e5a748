import { Checkbox as AriaCheckbox } from "react-aria-components";

/** A box to tick, in tables: the label is read only. */
export function Tick({
  label,
  value,
  isMixed = false,
  isDisabled = false,
  onChange,
}: {
  label: string;
  value: boolean;
  isMixed?: boolean;
  isDisabled?: boolean;
  onChange: (value: boolean) => void;
}) {
  return (
    <AriaCheckbox
      aria-label={label}
      isSelected={value}
      isIndeterminate={isMixed}
      isDisabled={isDisabled}
      onChange={onChange}
      className="group inline-flex size-6 items-center justify-center rounded-sm"
    >
      <span className="flex size-4 items-center justify-center rounded-[3px] border border-edge bg-raised text-on-accent group-data-indeterminate:border-accent group-data-indeterminate:bg-accent group-data-selected:border-accent group-data-selected:bg-accent">
        <svg
          aria-hidden="true"
          viewBox="0 0 12 12"
          className="size-3 opacity-0 group-data-indeterminate:opacity-100 group-data-selected:opacity-100"
        >
          <path
            d={isMixed ? "M2.5 6h7" : "M2.5 6.5l2.5 2.5 4.5-5.5"}
            fill="none"
            stroke="currentColor"
            strokeWidth="1.75"
          />
        </svg>
      </span>
    </AriaCheckbox>
  );
}
