import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { type Entry, type Input, list, type OperationName } from "./client.ts";

/** A list as a table shows it: the rows that are loaded, and what loads more. */
export interface Rows<Row> {
  /** Undefined until the first page is there. */
  readonly rows: readonly Row[] | undefined;
  readonly error: Error | null;
  readonly refetch: () => void;
  /** Present if there are more rows than are loaded. */
  readonly onMore: (() => void) | undefined;
  /** Whether the list has more rows than are loaded. */
  readonly hasMore: boolean;
}

/** Reads a list page by page. With an interval, a list of one page is read again in it, unless the window is hidden. */
export function useRows<Name extends OperationName>(
  name: Name,
  input: Omit<Input<Name>, "cursor">,
  isEnabled = true,
  interval: number | false = false,
): Rows<Entry<Name>> {
  return usePages(name, input, isEnabled, entriesOf<Entry<Name>>, interval);
}

/** The entries of a page whose `data` is the list. */
function entriesOf<Row>(data: unknown): readonly Row[] {
  return data as readonly Row[];
}

/** The same for a list whose entries are elsewhere in the `data`. `entriesOf` must be the same function each time. */
export function usePages<Name extends OperationName, Row>(
  name: Name,
  input: Omit<Input<Name>, "cursor">,
  isEnabled: boolean,
  entriesOf: (data: unknown) => readonly Row[],
  interval: number | false = false,
): Rows<Row> {
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetching } = useInfiniteQuery({
    ...list(name, input),
    enabled: isEnabled,
    refetchInterval: ({ state }) => (state.data && state.data.pages.length > 1 ? false : interval),
  });
  const rows = useMemo(() => data?.pages.flatMap(({ data }) => entriesOf(data)), [data, entriesOf]);
  return {
    rows,
    error,
    refetch: () => void refetch(),
    onMore: hasNextPage && !isFetching ? () => void fetchNextPage() : undefined,
    hasMore: hasNextPage,
  };
}
