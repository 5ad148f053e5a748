import type { Key } from "@latchkey/sdk";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { type Input, list } from "../../api/client.ts";
import { DAY } from "../../api/format.ts";
import { type KeysOrder, type KeysSearch, keysOrders } from "../../layout/searches.ts";
import type { TableOrder } from "../../ui/tables/table-order.ts";

const MINUTE = 60_000;
const expiryDays = { "1d": 1, "14d": 14, "90d": 90 } as const;

const orders = {
  asc: { order: "asc" },
  desc: { order: "desc" },
  name: { orderBy: "name", order: "asc" },
  "-name": { orderBy: "name", order: "desc" },
  expires: { orderBy: "expires", order: "asc" },
  "-expires": { orderBy: "expires", order: "desc" },
  used: { orderBy: "lastUsedAt", order: "asc" },
  "-used": { orderBy: "lastUsedAt", order: "desc" },
} as const satisfies Record<KeysOrder | "desc", Pick<Input<"apis.listKeys">, "orderBy" | "order">>;

/** The order of the table of keys that the address asks for. */
export function tableOrderOf(order: KeysOrder | undefined): TableOrder | undefined {
  if (order === undefined) return undefined;
  if (order === "asc") return { column: "created", direction: "asc" };
  const isDescending = order.startsWith("-");
  return { column: isDescending ? order.slice(1) : order, direction: isDescending ? "desc" : "asc" };
}

/** What the address has for an order of the table. */
export function keysOrderOf(order: TableOrder | undefined): KeysOrder | undefined {
  if (order?.column === "created") return order.direction === "asc" ? "asc" : undefined;
  return keysOrders.find((name) => name === `${order?.direction === "desc" ? "-" : ""}${order?.column}`);
}

/** The input of a list of keys without its pages. */
export type KeysFilter = Input<"apis.countKeys"> & Pick<Input<"apis.listKeys">, "orderBy" | "order">;

/** Keys of an API, as the address of the page asks for them. */
export interface KeyList {
  readonly filter: KeysFilter;
  /** Whether the filter can leave out keys. */
  readonly hasFilter: boolean;
  /** Undefined until the first page is there. */
  readonly rows: readonly Key[] | undefined;
  readonly error: Error | null;
  readonly refetch: () => void;
  /** Whether the rows are those of the last filter, because those of this one are on their way. */
  readonly isOfLastFilter: boolean;
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  /** Present if more rows can be loaded. */
  readonly onMore: (() => void) | undefined;
}

export function useKeyList(apiId: string, search: KeysSearch): KeyList {
  const { q, state, expires, prefix, role, owner, budget, plan, order } = search;
  // Other members of the address, such as the open key, do not change what is listed.
  const filter = useMemo(
    () => filterOf(apiId, { q, state, expires, prefix, role, owner, budget, plan, order }),
    [apiId, q, state, expires, prefix, role, owner, budget, plan, order],
  );
  const keys = useInfiniteQuery({
    ...list("apis.listKeys", { ...filter, limit: 100 }),
    placeholderData: (before, query) => (isOfApi(query?.queryKey, apiId) ? before : undefined),
  });
  const rows = useMemo(() => keys.data?.pages.flatMap(({ data }) => data), [keys.data]);
  return {
    filter,
    hasFilter: Object.entries(search).some(([name, value]) => !["key", "order", "create"].includes(name) && value),
    rows,
    error: keys.error,
    refetch: () => void keys.refetch(),
    isOfLastFilter: keys.isPlaceholderData,
    // Rows of the last filter may have been all of it.
    hasMore: keys.hasNextPage || keys.isPlaceholderData,
    isLoadingMore: keys.isFetchingNextPage,
    onMore: keys.hasNextPage && !keys.isFetching ? () => void keys.fetchNextPage() : undefined,
  };
}

/** Whether a key of a query is that of a list of keys of this API. */
function isOfApi(queryKey: readonly unknown[] | undefined, apiId: string): boolean {
  return (queryKey?.[1] as { apiId?: string } | undefined)?.apiId === apiId;
}

/** What the address asks for. The times of filters are whole minutes, so that a page that is drawn again reads nothing new. */
function filterOf(
  apiId: string,
  { q, state, expires, prefix, role, owner, budget, plan, order }: KeysSearch,
): KeysFilter {
  const now = Math.floor(Date.now() / MINUTE) * MINUTE;
  return {
    apiId,
    ...orders[order ?? "desc"],
    ...(q && { search: q }),
    ...(state === "deleted" ? { deleted: true } : state && { state }),
    ...(expires && { expiresBefore: now + expiryDays[expires] * DAY }),
    ...(expires && !state && { state: "active" }),
    ...(prefix && { prefix }),
    ...(role && { role }),
    ...(owner && { externalId: owner }),
    ...(budget && { budgetId: budget }),
    ...(plan && { plan }),
  };
}
