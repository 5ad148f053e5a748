import { type ComponentProps, useCallback } from "react";
import { Filters, SearchField } from "./filters.tsx";
import { Listing } from "./listing.tsx";

/** A list below a field that searches it. */
export function SearchedListing<Row extends object>({
  one,
  many,
  placeholder,
  search,
  onSearch,
  ...list
}: Omit<ComponentProps<typeof Listing<Row>>, "label" | "noMatch"> & {
  /** What a row is, and the rows: `identity`, `identities`. */
  one: string;
  many: string;
  placeholder: string;
  /** The text of the address, and what writes it there. */
  search: string;
  onSearch: (text: string) => void;
}) {
  return (
    <>
      <Filters>
        <SearchField label={`Search ${many}`} placeholder={placeholder} value={search} onChange={onSearch} />
      </Filters>
      <Listing
        {...list}
        label={many.charAt(0).toUpperCase() + many.slice(1)}
        noMatch={search === "" ? undefined : `No ${one} matches “${search}”`}
      />
    </>
  );
}

/** Writes the text of a search into the address of a page whose only member it is. */
export function useSearchChange(
  navigate: (to: { search: { q?: string }; replace: boolean }) => Promise<void>,
): (text: string) => void {
  return useCallback((q) => void navigate({ search: q === "" ? {} : { q }, replace: true }), [navigate]);
}
