import { Latchkey, LatchkeyError } from "@latchkey/sdk";
import { QueryClient, queryOptions, useMutation } from "@tanstack/react-query";
import { waitForService } from "./connection.ts";

/** The service that sent this page; the cookie of the session authenticates. */
export const latchkey = new Latchkey({
  url: `${location.origin}/dashboard/api`,
  timeout: 20_000,
  retries: 1,
  onResponse: ({ status, error }) => {
    if (status === 401 && error?.type.startsWith("authentication/")) reportSessionEnd();
    if (error?.type === "network_error" || error?.type === "timeout") void waitForService();
  },
});

/** What runs when the service no longer accepts the session. The layout sets it. */
let sessionEnded = () => {};
/** Tells the layout that the service no longer accepts the session. */
export function reportSessionEnd(): void {
  sessionEnded();
}
export function onSessionEnd(listener: () => void): void {
  sessionEnded = listener;
}

export const queryClient = new QueryClient({
  defaultOptions: {
    // The client of the service retries.
    queries: { retry: false, staleTime: 5_000 },
    mutations: { retry: false },
  },
});

type Scope = Exclude<keyof Latchkey, symbol>;
/** The public names of all operations, such as `keys.createKey`. */
export type OperationName = { [S in Scope]: `${S}.${Exclude<keyof Latchkey[S], symbol | number>}` }[Scope];
type Method<Name extends OperationName> = Name extends `${infer S extends Scope}.${infer M}`
  ? M extends keyof Latchkey[S]
    ? Latchkey[S][M]
    : never
  : never;
type Callable<Name extends OperationName> =
  Method<Name> extends infer F extends (...args: never[]) => Promise<unknown> ? F : never;
/** The input of an operation. */
export type Input<Name extends OperationName> = NonNullable<Parameters<Callable<Name>>[0]>;
/** The answer of an operation with its `requestId`, and `pagination` for a list. */
export type Answer<Name extends OperationName> = Awaited<ReturnType<Callable<Name>>>;
/** The `data` of an answer. */
export type Data<Name extends OperationName> = Answer<Name> extends { data: infer D } ? D : never;

/** Calls an operation by its public name. */
export async function call<Name extends OperationName>(
  name: Name,
  input: Input<Name>,
  options: { signal?: AbortSignal | undefined; idempotencyKey?: string } = {},
): Promise<Answer<Name>> {
  const [scope, method] = name.split(".") as [Scope, string];
  const operations = latchkey[scope] as unknown as Record<string, (input: unknown, own: unknown) => Promise<unknown>>;
  return (await operations[method]!(input, options)) as Answer<Name>;
}

/** For `useQuery`: the `data` of an operation that reads. */
export function read<Name extends OperationName>(name: Name, input: Input<Name>) {
  return queryOptions<Data<Name>, LatchkeyError>({
    queryKey: [name, input],
    queryFn: async ({ signal }) => ((await call(name, input, { signal })) as { data: Data<Name> }).data,
  });
}

/** The page of a list. */
export interface ListPage<Entry> {
  readonly data: readonly Entry[];
  readonly pagination: { readonly hasMore: boolean; readonly cursor?: string };
}
/** An entry of a list operation. */
export type Entry<Name extends OperationName> = Data<Name> extends readonly (infer E)[] ? E : never;

/** For `useInfiniteQuery`: a list, page by page. */
export function list<Name extends OperationName>(name: Name, input: Omit<Input<Name>, "cursor">) {
  return {
    queryKey: [name, input],
    queryFn: ({ pageParam, signal }: { pageParam: string | undefined; signal: AbortSignal }) =>
      call(name, { ...input, ...(pageParam !== undefined && { cursor: pageParam }) } as unknown as Input<Name>, {
        signal,
      }) as unknown as Promise<ListPage<Entry<Name>>>,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ pagination }: ListPage<Entry<Name>>) => (pagination.hasMore ? pagination.cursor : undefined),
  };
}

/** A call that changes something. Everything that is shown is read again after it. */
export function useCall<Name extends OperationName>(name: Name) {
  return useMutation<Answer<Name>, Error, Input<Name>>({
    mutationKey: [name],
    mutationFn: (input) => call(name, input),
    // Inputs and answers can have secrets: they are forgotten with the form.
    gcTime: 0,
    onSuccess: () => refresh(),
  });
}

/** Pages of a list that are read again after a change, one after the other: at least 1,000 rows, at most 10,000. */
const PAGES_MIN = 10;
const PAGES_MAX = 100;

interface LoadedPages {
  readonly pages?: readonly unknown[];
  readonly pageParams?: readonly unknown[];
}

/**
 * Reads everything again that is shown, or what some operations gave, except for the session. Pages of a list below the window are loaded when they are
 * scrolled to; those above it stay, so that the window does not jump.
 */
export async function refresh(isWanted: (operation: string) => boolean = () => true): Promise<void> {
  const predicate = ({ queryKey: [name] }: { queryKey: readonly unknown[] }) =>
    name !== "session" && isWanted(String(name));
  const seen = Math.min(1, (window.scrollY + window.innerHeight) / document.documentElement.scrollHeight);
  for (const type of ["active", "inactive"] as const) {
    queryClient.setQueriesData<LoadedPages>({ type, predicate }, (data) => {
      if (!data?.pages || !data.pageParams) return data;
      // The next page is loaded before its first row is in the window.
      const scrolled = type === "active" ? Math.ceil(data.pages.length * seen) + 1 : 0;
      const kept = Math.min(PAGES_MAX, Math.max(PAGES_MIN, scrolled));
      if (data.pages.length <= kept) return data;
      return { ...data, pages: data.pages.slice(0, kept), pageParams: data.pageParams.slice(0, kept) };
    });
  }
  await queryClient.invalidateQueries({ predicate });
}

/** Whether an error has this type, such as `data/key_not_found`. */
export function isProblem(error: unknown, type: LatchkeyError["type"]): boolean {
  return error instanceof LatchkeyError && error.type === type;
}
