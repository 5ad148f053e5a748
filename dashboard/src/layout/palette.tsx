import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { read } from "../api/client.ts";
import { signOut } from "../api/session.ts";
import { classes } from "../ui/classes.ts";
import { Dialog } from "../ui/dialog.tsx";
import { useTheme } from "../ui/theme.ts";
import { toastError } from "../ui/toast.tsx";
import { places } from "./places.ts";

interface Command {
  readonly id: string;
  readonly label: string;
  readonly kind: string;
  readonly words: string;
  readonly run: () => unknown;
}

const COMMANDS_MAX = 12;

/** The command palette: places, APIs, a key by its id, and commands, found while one types. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const navigate = useNavigate();
  const [, setTheme] = useTheme();
  const { data: apis = [] } = useQuery(read("apis.listApis", { limit: 100 }));
  const commands = useMemo((): Command[] => {
    const wanted = text.trim().toLowerCase();
    const all: Command[] = [
      ...places.map(({ label, to, words = "" }) => ({
        id: `place ${label}`,
        label,
        kind: "Place",
        words,
        run: () => navigate({ to }),
      })),
      ...apis.map(({ apiId, name }) => ({
        id: apiId,
        label: name,
        kind: "Keys of the API",
        words: apiId,
        run: () => navigate({ to: "/apis/$apiId", params: { apiId } }),
      })),
      ...apis.map(({ apiId, name }) => ({
        id: `settings ${apiId}`,
        label: `Settings of ${name}`,
        kind: "Settings of the API",
        words: `${apiId} leak kit upstream verifier portal sessions`,
        run: () => navigate({ to: "/apis/$apiId/settings", params: { apiId } }),
      })),
      {
        id: "report a leaked key",
        label: "Report a leaked key",
        kind: "Command",
        words: "leak",
        run: () => navigate({ to: "/apis", search: { report: true } }),
      },
      ...(["light", "dark", "system"] as const).map((theme) => ({
        id: `theme ${theme}`,
        label: `Theme: ${theme}`,
        kind: "Command",
        words: "dark light mode",
        run: () => setTheme(theme),
      })),
      {
        id: "sign out",
        label: "Sign out",
        kind: "Command",
        words: "log out",
        run: () =>
          signOut()
            .then(() => navigate({ to: "/sign-in" }))
            .catch(toastError),
      },
    ];
    const found = all.filter(({ label, words }) => `${label} ${words}`.toLowerCase().includes(wanted));
    return found.slice(0, COMMANDS_MAX);
  }, [text, apis, navigate, setTheme]);
  const chosen = commands[Math.min(index, commands.length - 1)];
  const run = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    command.run();
  };
  return (
    <Dialog title="Search or run a command" isOpen onClose={onClose} size="md">
      <input
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="palette"
        aria-activedescendant={chosen && `palette-${commands.indexOf(chosen)}`}
        aria-label="Search"
        placeholder="A place, an API, a command"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setIndex(0);
        }}
        onKeyDown={(event) => {
          const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
          if (step !== 0) {
            event.preventDefault();
            setIndex((before) => Math.max(0, Math.min(commands.length - 1, before + step)));
          } else if (event.key === "Enter") {
            run(chosen);
          }
        }}
        autoComplete="off"
        spellCheck={false}
        className="h-9 w-full rounded-md border border-edge bg-raised px-3"
      />
      <div id="palette" role="listbox" aria-label="Results" className="max-h-96 overflow-y-auto">
        {commands.map((command, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the focus and handles the keys.
          <div
            key={command.id}
            id={`palette-${at}`}
            role="option"
            tabIndex={-1}
            aria-selected={command === chosen}
            onClick={() => run(command)}
            className={classes(
              "flex items-center justify-between gap-4 rounded-md px-3 py-1.5 hover:bg-hover",
              command === chosen && "bg-accent-soft",
            )}
          >
            <span className="truncate">{command.label}</span>
            <span className="shrink-0 text-xs text-quiet">{command.kind}</span>
          </div>
        ))}
      </div>
      {commands.length === 0 && <p className="text-quiet">Nothing matches “{text}”.</p>}
    </Dialog>
  );
}
