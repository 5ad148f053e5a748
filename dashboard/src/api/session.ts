import { LatchkeyError } from "@latchkey/sdk";
import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";
import { queryClient, refresh, reportSessionEnd } from "./client.ts";
import { compileGrants, type Grants, meets } from "./grants.ts";

/** Who is signed in. */
export interface Session {
  readonly sessionId: string;
  readonly workspace: { readonly id: string; readonly name: string };
  readonly rootKey: { readonly keyId: string; readonly name: string; readonly permissions: readonly string[] };
  /** Unix time in milliseconds. */
  readonly createdAt: number;
  /** Unix time in milliseconds at which the session ends if it is not used. */
  readonly expiresAt: number;
  /** The version of the service. */
  readonly version: string;
}

/** How to sign in: with a root key, or with the token of the one-time link of the first start. */
export type Credentials = { readonly rootKey: string } | { readonly link: string };

/** The session of this browser; null if there is none. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async (): Promise<Session | null> => {
    try {
      return await send<Session>("GET");
    } catch (error) {
      if (!(error instanceof LatchkeyError && error.status === 401)) throw error;
      const before = queryClient.getQueryData<Session | null>(["session"]);
      // The page stays: one signs in again over it.
      if (before) reportSessionEnd();
      return before ?? null;
    }
  },
  staleTime: 5 * 60_000,
});

/** Exchanges credentials for a session. They are kept nowhere. */
export async function signIn(credentials: Credentials): Promise<Session> {
  const session = await send<Session>("POST", credentials);
  queryClient.clear();
  queryClient.setQueryData(sessionQuery.queryKey, session);
  return session;
}

/** Signs in again after the session has ended. What was entered on the page stays, unless the workspace is another one. */
export async function renewSession(credentials: Credentials): Promise<void> {
  const before = queryClient.getQueryData<Session>(["session"]);
  const session = await send<Session>("POST", credentials);
  if (before?.workspace.id !== session.workspace.id) location.assign("/");
  queryClient.setQueryData(["session"], session);
  await refresh();
}

/** Ends the session, and forgets what it read. */
export async function signOut(): Promise<void> {
  await send("DELETE");
  forgetSession();
}

/** Forgets the session and everything that it read. */
export function forgetSession(): void {
  queryClient.clear();
  queryClient.setQueryData(sessionQuery.queryKey, null);
}

/** The session. Only below the layout, which does not render without one. */
export function useSession(): Session {
  const { data } = useSuspenseQuery(sessionQuery);
  if (!data) throw new Error("There is no session.");
  return data;
}

/**
 * Whether the root key of the session may do something: `can("apis.api_1.create_key")`. The service decides; this is for
 * what is shown as disabled.
 */
export function useCan(): (permission: string) => boolean {
  const { rootKey } = useSession();
  const grants = grantsOf(rootKey.permissions);
  return (permission) => meets(grants, permission);
}

const compiled = new WeakMap<readonly string[], Grants>();
function grantsOf(permissions: readonly string[]): Grants {
  const grants = compiled.get(permissions) ?? compileGrants(permissions);
  compiled.set(permissions, grants);
  return grants;
}

async function send<Answer>(method: "GET" | "POST" | "DELETE", body?: object): Promise<Answer> {
  const operation = "dashboard/session";
  let response: Response;
  try {
    response = await fetch(`${location.origin}/dashboard/session`, {
      method,
      ...(method !== "GET" && {
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body ?? {}),
      }),
    });
  } catch (cause) {
    throw new LatchkeyError({ type: "network_error", operation, detail: "The service cannot be reached.", cause });
  }
  const { data, error, meta } = (await response.json().catch(() => ({}))) as {
    data?: Answer;
    error?: { type: string; detail: string };
    meta?: { requestId?: string };
  };
  if (response.ok && data !== undefined) return data;
  throw new LatchkeyError({
    type: error === undefined ? "invalid_answer" : errorTypeOf(error.type),
    operation,
    detail: error?.detail ?? `The service answered with status ${response.status}.`,
    status: response.status,
    requestId: meta?.requestId,
    retryAfter: Number(response.headers.get("Retry-After")) * 1_000 || undefined,
  });
}

/** The type of an error, of which an answer has the page. */
export function errorTypeOf(page: string): LatchkeyError["type"] {
  return page.replace(/^.*\/errors\//, "") as LatchkeyError["type"];
}
