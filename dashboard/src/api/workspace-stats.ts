import { useQueries, useQuery } from "@tanstack/react-query";
import { type Data, type Entry, read } from "./client.ts";
import { useCan } from "./session.ts";

/** APIs and namespaces whose statistics are read at once, one call each. */
export const SUBJECTS_MAX = 20;

/** A range as `analytics.*` takes it. */
export interface Range {
  readonly start: number;
  readonly end: number;
  readonly granularity: "minute" | "hour" | "day";
}

/** A range as rankings take it, which count whole hours or days. */
export function usageRange({ start, end, granularity }: Range) {
  return { start, end, granularity: granularity === "day" ? ("day" as const) : ("hour" as const) };
}

/** The statistics of each member of a list. */
export interface StatsOf<Subject, Stats> {
  readonly subjects: readonly { readonly subject: Subject; readonly stats: Stats | undefined }[];
  /** Whether the list has members that are not read. */
  readonly isCut: boolean;
  readonly isPending: boolean;
  readonly error: Error | null;
  /** The permission that the root key lacks. */
  readonly lacks?: string;
}

/** Reads the verifications of each API. */
export function useApiStats(
  range: Range,
  { tags, isEnabled = true }: { tags?: readonly string[] | undefined; isEnabled?: boolean } = {},
): StatsOf<Entry<"apis.listApis">, Data<"analytics.getApiStats">> {
  const can = useCan();
  const lacks = ["apis.*.read_api", "apis.some.read_analytics"].find((permission) => !can(permission));
  const isOn = isEnabled && lacks === undefined;
  const listed = useQuery({ ...read("apis.listApis", { limit: SUBJECTS_MAX + 1 }), enabled: isOn });
  const apis = (listed.data ?? []).filter(({ apiId }) => can(`apis.${apiId}.read_analytics`)).slice(0, SUBJECTS_MAX);
  const stats = useQueries({
    queries: apis.map(({ apiId }) => ({
      ...read("analytics.getApiStats", { apiId, ...range, ...(tags?.length && { tags }) }),
      enabled: isEnabled,
    })),
  });
  return {
    subjects: apis.map((subject, index) => ({ subject, stats: stats[index]?.data })),
    isCut: (listed.data?.length ?? 0) > SUBJECTS_MAX,
    isPending: isOn && (listed.isPending || stats.some(({ isPending }) => isPending)),
    error: listed.error ?? stats.find(({ error }) => error)?.error ?? null,
    ...(lacks !== undefined && { lacks: lacks.replace(".some.", ".*.") }),
  };
}

/** Reads the decisions of each rate limit namespace. */
export function useNamespaceStats(
  range: Range,
): StatsOf<Entry<"ratelimits.listNamespaces">, Data<"analytics.getRatelimitStats">> {
  const can = useCan();
  const lacks = ["ratelimits.*.read_namespace", "ratelimits.some.read_analytics"].find(
    (permission) => !can(permission),
  );
  const isOn = lacks === undefined;
  const listed = useQuery({ ...read("ratelimits.listNamespaces", { limit: SUBJECTS_MAX + 1 }), enabled: isOn });
  const namespaces = (listed.data ?? [])
    .filter(({ id }) => can(`ratelimits.${id}.read_analytics`))
    .slice(0, SUBJECTS_MAX);
  const stats = useQueries({
    queries: namespaces.map(({ id }) => read("analytics.getRatelimitStats", { namespace: id, ...range })),
  });
  return {
    subjects: namespaces.map((subject, index) => ({ subject, stats: stats[index]?.data })),
    isCut: (listed.data?.length ?? 0) > SUBJECTS_MAX,
    isPending: isOn && (listed.isPending || stats.some(({ isPending }) => isPending)),
    error: listed.error ?? stats.find(({ error }) => error)?.error ?? null,
    ...(lacks !== undefined && { lacks: lacks.replace(".some.", ".*.") }),
  };
}
