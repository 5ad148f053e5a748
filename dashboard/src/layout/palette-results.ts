import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { type Data, read } from "../api/client.ts";
import { localTime } from "../api/format.ts";
import { useCan } from "../api/session.ts";
import { reasonOf } from "../pages/decisions/decision.ts";
import type { Command } from "./palette-commands.ts";

type Found = Data<"system.search">["results"][number];

/** Typing pauses for this long before the service is asked. */
const PAUSE_MS = 120;
/** The decisions of one request that are shown: one of a batch can have more. */
const REQUEST_DECISIONS_MAX = 10;

const titles: Record<Found["kind"], string> = {
  key: "Keys",
  identity: "Identities",
  api: "APIs",
  budget: "Budgets",
  namespace: "Rate limit namespaces",
  webhook: "Webhooks",
  role: "Roles",
  permission: "Permissions",
  rootKey: "Root keys",
};

/** What the service finds for a text, exact matches first. */
export function useResults(text: string) {
  const navigate = useNavigate();
  const can = useCan();
  const query = useSettled(text.trim());
  const { data: apis = [] } = useQuery(read("apis.listApis", { limit: 100 }));
  const { data, error } = useQuery({
    ...read("system.search", { query }),
    enabled: query !== "",
    // The text can be a key string, which is forgotten with the palette.
    gcTime: 0,
    placeholderData: (before) => before,
  });
  const isRequest = /^req_\w+$/.test(query);
  const decisions = useQuery({
    ...read("analytics.listDecisions", { requestId: query, limit: REQUEST_DECISIONS_MAX }),
    enabled: isRequest && (can("apis.some.read_analytics") || can("ratelimits.some.read_analytics")),
  });
  const nameOf = (apiId: string | undefined) => apis.find((api) => api.apiId === apiId)?.name;
  const open = ({ kind, id, name, apiId = "" }: Found) => {
    switch (kind) {
      case "key":
        return navigate({ to: "/apis/$apiId/keys/$keyId", params: { apiId, keyId: id } });
      case "identity":
        return navigate({ to: "/identities/$identityId", params: { identityId: id } });
      case "api":
        return navigate({ to: "/apis/$apiId", params: { apiId: id } });
      case "budget":
        return navigate({ to: "/budgets/$budgetId", params: { budgetId: id } });
      case "namespace":
        return navigate({ to: "/ratelimits/$namespaceId", params: { namespaceId: id } });
      case "webhook":
        return navigate({ to: "/webhooks/$webhookId", params: { webhookId: id } });
      case "rootKey":
        return navigate({ to: "/root-keys", search: { open: id } });
      default:
        return navigate({ to: "/roles", search: { q: name ?? id } });
    }
  };
  const commandOf = (found: Found): Command => ({
    id: found.id,
    label: found.name ?? found.start ?? found.id,
    detail:
      found.kind === "key"
        ? [found.externalId, found.start, nameOf(found.apiId)].filter(Boolean).join(" · ")
        : found.id,
    run: () => open(found),
  });
  const ofRequest = (decisions.data ?? []).map(
    (decision): Command => ({
      id: decision.id,
      label: decision.code,
      detail: [localTime(decision.at), reasonOf(decision), decision.keyId ?? decision.identifier]
        .filter(Boolean)
        .join(" · "),
      run: () => navigate({ to: "/decisions", search: { about: query, open: decision.id } }),
    }),
  );
  const found = query === "" ? [] : (data?.results ?? []);
  const sections = Object.entries(titles).map(([kind, title]) => ({
    title,
    commands: found.filter((one) => one.kind === kind && !one.isExact).map(commandOf),
  }));
  return {
    exact: found.filter(({ isExact }) => isExact).map(commandOf),
    sections: [{ title: "Decisions of the request", commands: ofRequest }, ...sections].filter(
      ({ commands }) => commands.length > 0,
    ),
    isPending: text.trim() !== query || (query !== "" && !data && !error) || decisions.isLoading,
    isPartial: query !== "" && data?.isComplete === false,
    error: error ?? decisions.error,
  };
}

/** A text after a pause in typing. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), text === "" ? 0 : PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
