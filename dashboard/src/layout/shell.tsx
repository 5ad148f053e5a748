import { Link, Outlet, useRouter } from "@tanstack/react-router";
import { Menu as MenuIcon, Monitor, Moon, Search, Sun, X } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { followChanges } from "../api/changes.ts";
import { onSessionEnd } from "../api/client.ts";
import { loadCode } from "../api/connection.ts";
import { signOut, useSession } from "../api/session.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { classes } from "../ui/classes.ts";
import { Menu } from "../ui/overlays/menu.tsx";
import { Toasts, toastError } from "../ui/overlays/toast.tsx";
import { type Theme, useTheme } from "../ui/theme.ts";
import { Health, Reconnecting } from "./health.tsx";
import { LeaveGuard } from "./leave-guard.tsx";
import { places } from "./places.ts";

const SignInAgain = lazy(() => loadCode(() => import("./sign-in-again.tsx")));
const Shortcuts = lazy(() => loadCode(() => import("./shortcuts.tsx")));
const Palette = lazy(() => loadCode(() => import("./palette.tsx")));

/** What is around every page: places at the left, workspace, search, health, theme and session at the top. */
export function Shell() {
  const { workspace } = useSession();
  const router = useRouter();
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [areShortcutsOpen, setShortcutsOpen] = useState(false);
  const [isSessionEnded, setSessionEnded] = useState(false);
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  useEffect(() => {
    onSessionEnd(() => setSessionEnded(true));
    return () => onSessionEnd(() => {});
  }, []);
  useEffect(() => {
    if (isSessionEnded) return;
    const end = new AbortController();
    void followChanges(end.signal);
    return () => end.abort();
  }, [isSessionEnded]);
  useEffect(() => router.subscribe("onResolved", () => setDrawerOpen(false)), [router]);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isTyping = (event.target as HTMLElement).closest("input, textarea, [contenteditable]");
      const isPlain = !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setPaletteOpen(true);
      } else if (event.key === "/" && isPlain) {
        const search = document.querySelector<HTMLElement>("[data-search]");
        if (search) {
          event.preventDefault();
          search.focus();
        }
      } else if (event.key === "?" && isPlain && !document.querySelector("[role=dialog]")) {
        setShortcutsOpen(true);
      }
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  return (
    <>
      <a href="#main" className="sr-only focus:not-sr-only focus:fixed focus:z-50 focus:bg-raised focus:p-3">
        Skip to the content
      </a>
      <header className="sticky top-0 z-30 flex h-12 items-center gap-2 border-b border-line bg-paper px-2 sm:px-3">
        <IconButton
          label={isDrawerOpen ? "Close the places" : "Open the places"}
          className="md:hidden"
          onPress={() => setDrawerOpen(!isDrawerOpen)}
        >
          {isDrawerOpen ? <X aria-hidden /> : <MenuIcon aria-hidden />}
        </IconButton>
        <Link to="/" className="flex items-center gap-2 rounded-md px-1.5 font-semibold">
          <img src="/icon.svg" alt="" width="20" height="20" />
          <span className="max-sm:sr-only">Latchkey</span>
        </Link>
        <span
          dir="auto"
          className="min-w-0 truncate border-l border-line pl-3 text-left text-quiet max-sm:hidden"
          title={workspace.id}
        >
          {workspace.name}
        </span>
        <div className="flex flex-1 justify-end md:justify-center">
          <Button
            kind="plain"
            className="md:w-80 md:!justify-start !border-line text-quiet max-md:!border-transparent max-md:!bg-transparent"
            onPress={() => setPaletteOpen(true)}
          >
            <Search aria-hidden />
            <span className="max-md:sr-only">Search or run a command</span>
            <kbd className="ml-auto font-sans text-xs max-md:hidden">Ctrl K</kbd>
          </Button>
        </div>
        <Health />
        <ThemeMenu />
        <SessionMenu onShortcuts={() => setShortcutsOpen(true)} />
      </header>
      <div className="md:grid md:grid-cols-[12.5rem_minmax(0,1fr)]">
        <nav
          aria-label="Places"
          className={classes(
            "z-20 bg-paper md:sticky md:top-12 md:block md:h-[calc(100dvh-3rem)] md:overflow-y-auto md:border-r md:border-line",
            isDrawerOpen ? "appear fixed inset-x-0 top-12 bottom-0 overflow-y-auto" : "hidden",
          )}
        >
          <ul className="space-y-0.5 p-2.5">
            {places.map(({ label, to, icon: Icon }) => (
              <li key={label}>
                <Link
                  to={to}
                  activeOptions={{ exact: to === "/", includeSearch: false }}
                  className="flex items-center gap-2.5 rounded-md px-2.5 py-1.5 text-quiet hover:bg-hover hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:font-medium aria-[current=page]:text-accent"
                >
                  <Icon aria-hidden className="size-4" />
                  {label}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <main id="main" tabIndex={-1} className="min-w-0 outline-none">
          <Reconnecting />
          <Outlet />
        </main>
      </div>
      <Suspense>{isPaletteOpen && <Palette onClose={() => setPaletteOpen(false)} />}</Suspense>
      <Suspense>{areShortcutsOpen && <Shortcuts onClose={() => setShortcutsOpen(false)} />}</Suspense>
      <Suspense>{isSessionEnded && <SignInAgain onDone={() => setSessionEnded(false)} />}</Suspense>
      <LeaveGuard />
      <Toasts />
    </>
  );
}

const themes = { system: Monitor, light: Sun, dark: Moon };

function ThemeMenu() {
  const [theme, setTheme] = useTheme();
  const Icon = themes[theme];
  const options: [Theme, string][] = [
    ["system", "As the system"],
    ["light", "Light"],
    ["dark", "Dark"],
  ];
  return (
    <Menu
      label="Theme"
      trigger={(opener) => (
        <IconButton {...opener} label="Theme">
          <Icon aria-hidden />
        </IconButton>
      )}
      entries={options.map(([value, label]) => ({ label, isChosen: value === theme, onAction: () => setTheme(value) }))}
    />
  );
}

function SessionMenu({ onShortcuts }: { onShortcuts: () => void }) {
  const { rootKey, version } = useSession();
  const router = useRouter();
  const leave = async () => {
    try {
      await signOut();
      await router.navigate({ to: "/sign-in" });
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <Menu
      label="Session"
      trigger={(opener) => (
        <Button {...opener} kind="quiet" className="!px-2" aria-label={`Session of ${rootKey.name || "a root key"}`}>
          <span className="max-w-32 truncate">{rootKey.name || "Session"}</span>
        </Button>
      )}
      entries={[
        { label: "Documents", href: "/docs" },
        { label: "API reference", href: "/reference" },
        { label: "Errors", href: "/errors" },
        { label: "Keyboard shortcuts", onAction: onShortcuts },
        "line",
        { label: "Sign out", onAction: leave },
        "line",
        { label: `Version ${version}`, href: "/health" },
      ]}
    />
  );
}
