import type { ReactNode } from "react";
import { TextField } from "./fields.tsx";
import { Select } from "./select.tsx";

/** The most objects that a choice lists. Others are found by a search. */
export const LISTED_MAX = 100;

/** The choice of an object; empty for none. Where the objects cannot be listed, what names one is entered. */
export function ListedChoice({
  label,
  description,
  value,
  onChange,
  options,
  search,
  onSearch,
  children,
}: {
  label: string;
  /** Of what is entered. */
  description: string;
  value: string;
  onChange: (value: string) => void;
  /** Undefined: they cannot be listed. */
  options: readonly { value: string; label: string }[] | undefined;
  search: string;
  onSearch: (search: string) => void;
  /** About what is chosen. */
  children?: ReactNode;
}) {
  if (options === undefined) {
    return (
      <TextField
        label={label}
        description={description}
        value={value}
        onChange={(text) => onChange(text.trim())}
        isMono
      />
    );
  }
  const isListed = value === "" || options.some((option) => option.value === value);
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <div>
        <Select
          label={label}
          value={value}
          onChange={onChange}
          options={[{ value: "", label: "None" }, ...(isListed ? [] : [{ value, label: value }]), ...options]}
        />
        {children}
      </div>
      {(search !== "" || options.length >= LISTED_MAX) && (
        <TextField
          label={`Find a ${label.toLowerCase()}`}
          placeholder="Name or id"
          value={search}
          onChange={onSearch}
        />
      )}
    </div>
  );
}
