import { useNavigate, useRouter, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Button as AriaButton } from "react-aria-components";
import { call } from "../api/client.ts";
import { type Credentials, signIn } from "../api/session.ts";
import { TextField } from "../ui/fields/fields.tsx";
import { useTabTitle } from "../ui/page.tsx";
import { ErrorBox } from "../ui/text/error-box.tsx";
import { Skeleton } from "../ui/text/skeleton.tsx";

/** Signs in with a root key, or with the one-time link of the first start. */
export function SignIn() {
  useTabTitle("Sign in");
  const { return: returnTo } = useSearch({ from: "/sign-in" });
  const navigate = useNavigate();
  const router = useRouter();
  const [rootKey, setRootKey] = useState("");
  const [state, setState] = useState<{ isPending: boolean; error?: unknown }>({ isPending: false });
  const [link] = useState(() => /^#?link=([\w.-]+)$/.exec(location.hash)?.[1]);
  const hasSentLink = useRef(false);

  const enter = async (credentials: Credentials) => {
    setState({ isPending: true });
    try {
      await signIn(credentials);
      setRootKey("");
      if ("link" in credentials) await navigate({ to: "/welcome", replace: true });
      else if (returnTo === undefined) await navigate({ to: (await isFirstRun()) ? "/welcome" : "/", replace: true });
      else router.history.replace(returnTo);
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: the link works once, so it is sent once.
  useEffect(() => {
    if (link === undefined || hasSentLink.current) return;
    hasSentLink.current = true;
    // The link must stay neither in the address nor in the history.
    window.history.replaceState(null, "", "/sign-in");
    void enter({ link });
  }, [link]);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (rootKey.trim() !== "") void enter({ rootKey: rootKey.trim() });
  };
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-sm flex-col justify-center gap-6 px-5 py-10">
      <header>
        <img src="/icon.svg" alt="" width="36" height="36" />
        <h1 className="mt-4 text-xl font-semibold tracking-tight">Sign in to Latchkey</h1>
        <p className="mt-1 text-quiet">
          With a root key. It is exchanged for a session and kept nowhere in the browser.
        </p>
      </header>
      {state.isPending && link !== undefined && state.error === undefined ? (
        <Skeleton lines={2} />
      ) : (
        <form onSubmit={submit} className="space-y-4">
          <TextField
            label="Root key"
            type="password"
            value={rootKey}
            onChange={setRootKey}
            isMono
            autoFocus
            placeholder="lk_root_…"
          />
          {state.error !== undefined && <ErrorBox error={state.error} />}
          <AriaButton
            type="submit"
            isPending={state.isPending}
            className="h-9 w-full rounded-md bg-accent font-medium text-on-accent hover:bg-accent-strong"
          >
            {state.isPending ? "Signing in…" : "Sign in"}
          </AriaButton>
        </form>
      )}
      <footer className="space-y-2 border-t border-line pt-4 text-quiet">
        <p>
          No root key at hand? On the machine of the service, <Command>latchkey sign-in-link</Command> prints a link
          that signs in once, and <Command>latchkey root-key create</Command> makes a root key.
        </p>
        <p className="flex gap-4">
          <a className="link" href="/docs">
            Documents
          </a>
          <a className="link" href="/reference">
            API reference
          </a>
        </p>
      </footer>
    </main>
  );
}

function Command({ children }: { children: string }) {
  return (
    <code className="rounded-sm bg-field px-1 py-0.5 font-mono text-xs whitespace-nowrap text-ink">{children}</code>
  );
}

/** Whether the workspace has no API yet. */
async function isFirstRun(): Promise<boolean> {
  try {
    return (await call("apis.listApis", { limit: 1 })).data.length === 0;
  } catch {
    // The root key may not list them.
    return false;
  }
}
