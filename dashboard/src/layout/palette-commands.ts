import { useQuery } from "@tanstack/react-query";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { useMemo } from "react";
import { read } from "../api/client.ts";
import { signOut, useCan } from "../api/session.ts";
import { useViews } from "../api/views.ts";
import { toastError } from "../ui/overlays/toast.tsx";
import { useTheme } from "../ui/theme.ts";
import { places } from "./places.ts";

/** An entry of the command palette. */
export interface Command {
  readonly id: string;
  readonly label: string;
  /** What tells it from others of the same name, beside it. */
  readonly detail: string;
  readonly run: () => unknown;
}

const SHOWN_MAX = 12;

/** The places and commands in whose names or words each word of a text occurs. */
export function useCommands(text: string): readonly Command[] {
  const navigate = useNavigate();
  const [, setTheme] = useTheme();
  const can = useCan();
  const { history } = useRouter();
  const { views } = useViews();
  const { data: apis = [] } = useQuery(read("apis.listApis", { limit: 100 }));
  const all = useMemo((): (Command & { words: string })[] => {
    const command = (label: string, words: string, run: () => unknown, detail = "Command") => ({
      id: `${detail} ${label}`,
      label,
      detail,
      words,
      run,
    });
    return [
      ...places.map(({ label, to, words = "" }) => command(label, words, () => navigate({ to }), "Place")),
      ...views.map(({ name, address }) => command(name, "view", () => history.push(address), "View")),
      ...apis
        .filter(({ apiId }) => can(`apis.${apiId}.create_key`))
        .map(({ apiId, name }) => {
          const run = () => navigate({ to: "/apis/$apiId", params: { apiId }, search: { create: true } });
          return { ...command(`Create key in ${name}`, `new add ${apiId}`, run), id: `create ${apiId}` };
        }),
      ...apis.map(({ apiId, name }) => {
        const run = () => navigate({ to: "/apis/$apiId/settings", params: { apiId } });
        const words = `${apiId} leak kit upstream verifier portal sessions`;
        return { ...command(`Settings of ${name}`, words, run, "Place"), id: `settings ${apiId}` };
      }),
      command("Documents", "docs guides help manual", () => location.assign("/docs"), "Pages to read"),
      command("API reference", "operations docs", () => location.assign("/reference"), "Pages to read"),
      command("Report a leaked key", "leak", () => navigate({ to: "/apis", search: { report: true } })),
      ...(["light", "dark", "system"] as const).map((theme) =>
        command(`Theme: ${theme}`, "dark light mode", () => setTheme(theme)),
      ),
      command("Sign out", "log out", () =>
        signOut()
          .then(() => navigate({ to: "/sign-in" }))
          .catch(toastError),
      ),
    ];
  }, [apis, views, can, history, navigate, setTheme]);
  return useMemo(() => {
    const wanted = text.trim().toLowerCase().split(/\s+/);
    const matching = all.filter(({ label, words }) =>
      wanted.every((word) => `${label} ${words}`.toLowerCase().includes(word)),
    );
    return matching.slice(0, SHOWN_MAX);
  }, [all, text]);
}
