import type { ReactNode } from "react";

/**
 * A box to tick. In tables the label is read only; elsewhere the children show it. It is an element of the browser, because
 * a table makes many of them while it is scrolled.
 */
export function Tick({
  label,
  value,
  isMixed = false,
  isDisabled = false,
  onChange,
  children,
}: {
  label: string;
  value: boolean;
  isMixed?: boolean;
  isDisabled?: boolean;
  onChange: (value: boolean) => void;
  /** The text beside the box, which has the label. */
  children?: ReactNode;
}) {
  return (
    <label className="inline-flex items-center gap-1 align-middle">
      <span className="relative inline-flex size-6 shrink-0 items-center justify-center">
        <input
          type="checkbox"
          aria-label={label}
          ref={(input) => {
            if (input) input.indeterminate = isMixed;
          }}
          checked={value}
          disabled={isDisabled}
          onChange={({ target }) => onChange(target.checked)}
          className="size-4 appearance-none rounded-[3px] border border-edge bg-raised checked:border-accent checked:bg-accent indeterminate:border-accent indeterminate:bg-accent"
        />
        {(value || isMixed) && (
          <svg aria-hidden="true" viewBox="0 0 12 12" className="pointer-events-none absolute size-3 text-on-accent">
            <path
              d={isMixed ? "M2.5 6h7" : "M2.5 6.5l2.5 2.5 4.5-5.5"}
              fill="none"
              stroke="currentColor"
              strokeWidth="1.75"
            />
          </svg>
        )}
      </span>
      {children}
    </label>
  );
}
