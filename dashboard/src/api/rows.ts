import { hashKey, useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { type Entry, type Input, list, type OperationName } from "./client.ts";
import { loadCode } from "./connection.ts";

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
  /** Saves the list as a file. Returns the number of rows if the list has more than a file may have. */
  readonly save: (label: string) => Promise<number | undefined>;
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
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetching, isPlaceholderData } = useInfiniteQuery({
    ...list(name, input),
    enabled: isEnabled,
    // The rows in the last order stay until those in this one are there.
    placeholderData: (before, query) =>
      hashKey([withoutOrder(query?.queryKey[1])]) === hashKey([withoutOrder(input)]) ? before : undefined,
    refetchInterval: ({ state }) => (state.data && state.data.pages.length > 1 ? false : interval),
  });
  const rows = useMemo(() => data?.pages.flatMap(({ data }) => entriesOf(data)), [data, entriesOf]);
  return {
    rows,
    error,
    refetch: () => void refetch(),
    onMore: hasNextPage && !isFetching ? () => void fetchNextPage() : undefined,
    hasMore: hasNextPage || isPlaceholderData,
    save: async (label) => {
      const { csvOfObjects, readAll, saveCsv } = await loadCode(() => import("./csv.ts"));
      const { rows, hasMore } = await readAll(name, input, entriesOf as (data: unknown) => readonly object[]);
      saveCsv(csvOfObjects(rows), label);
      return hasMore ? rows.length : undefined;
    },
  };
}

function withoutOrder(input: unknown): object {
  const { order: _, orderBy: __, ...rest } = (input ?? {}) as { order?: unknown; orderBy?: unknown };
  return rest;
}
