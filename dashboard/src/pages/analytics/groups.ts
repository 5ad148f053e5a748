import { useQueries, useQuery } from "@tanstack/react-query";
import { read } from "../../api/client.ts";
import { localTime } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { sumVerifications, type VerificationStats } from "../../api/stats.ts";
import { type Range, SUBJECTS_MAX, usageRange, useApiStats } from "../../api/workspace-stats.ts";
import type { AnalyticsSearch } from "../../layout/searches.ts";

/** A part of the verifications: those of an API, a key, an owner or a tag. */
export interface Group {
  readonly id: string;
  readonly label: string;
  readonly stats: VerificationStats;
  /** The members of the address that show this part alone. */
  readonly narrow: AnalyticsSearch;
}

/** What the pages of analytics show. */
export interface AnalyticsView {
  /** All verifications that the filters leave. */
  readonly sum: VerificationStats | undefined;
  /** Undefined while they are read, and for `by: code`. */
  readonly groups: readonly Group[] | undefined;
  /** What the groups leave out, or what must be chosen first. */
  readonly note?: string | undefined;
  readonly error: Error | null;
  readonly lacks?: string | undefined;
}

/** Tags that are charted one by one. Each is one call per API. */
const TAGS_MAX = 6;

/** Reads the verifications that the address asks for. */
export function useAnalyticsView(search: AnalyticsSearch, range: Range, isEnabled = true): AnalyticsView {
  const can = useCan();
  const { by = "code", api, key, owner } = search;
  const tags = search.tags?.split(" ").filter(Boolean);
  const filter = { ...range, ...(tags?.length && { tags }) };
  const subject = key ? "key" : owner ? "owner" : api ? "api" : "all";

  const all = useApiStats(range, { tags, isEnabled: isEnabled && subject === "all" });
  const one = {
    api: useQuery({
      ...read("analytics.getApiStats", { apiId: api ?? "", ...filter }),
      enabled: isEnabled && subject === "api",
    }),
    owner: useQuery({
      ...read("analytics.getIdentityStats", { identity: owner ?? "", ...filter }),
      enabled: isEnabled && subject === "owner",
    }),
    key: useQuery({
      ...read("analytics.getKeyStats", { keyId: key ?? "", ...filter }),
      enabled: isEnabled && subject === "key",
    }),
  };
  const chosen = subject === "all" ? undefined : one[subject];
  const subjectStats = all.subjects.flatMap(({ stats }) => stats ?? []);
  const sum =
    subject === "all" ? (all.isPending || all.lacks ? undefined : sumVerifications(subjectStats)) : chosen?.data;

  // The parts: the subjects of a list, each with its own statistics.
  const top = { ...usageRange(range), limit: SUBJECTS_MAX, ...(api !== undefined && { apiId: api }) };
  const wantsKeys =
    by === "key" && (subject === "all" || subject === "api") && can(`apis.${api ?? "*"}.read_analytics`);
  const topKeys = useQuery({ ...read("analytics.listTopKeys", top), enabled: wantsKeys });
  // A ranking does not know owners and their keys together.
  const wantsOwnKeys = by === "key" && subject === "owner" && api !== undefined && can(`apis.${api}.read_key`);
  const ownKeys = useQuery({
    ...read("apis.listKeys", { apiId: api ?? "", limit: SUBJECTS_MAX, order: "desc", externalId: owner }),
    enabled: wantsOwnKeys,
  });
  const keys: readonly { keyId: string; name?: string; start?: string; apiId?: string }[] | undefined = wantsOwnKeys
    ? ownKeys.data
    : topKeys.data?.keys;
  const keyStats = useQueries({
    queries: (keys ?? []).map(({ keyId }) => read("analytics.getKeyStats", { keyId, ...filter })),
  });
  const wantsOwners = by === "owner" && subject === "all" && can("identities.*.read_identity");
  const owners = useQuery({ ...read("analytics.listTopIdentities", top), enabled: wantsOwners });
  const ownerStats = useQueries({
    queries: (owners.data?.identities ?? []).map(({ identityId }) =>
      read("analytics.getIdentityStats", { identity: identityId, ...filter }),
    ),
  });
  const wantsTags = by === "tag" && chosen?.data !== undefined;
  const tagNames = (wantsTags ? (chosen.data?.tags ?? []) : [])
    .map(({ tag }) => tag)
    .filter((tag) => !tags?.includes(tag))
    .slice(0, TAGS_MAX);
  const tagStats = useQueries({
    queries: tagNames.map((tag) => {
      const narrowed = { ...range, tags: [...(tags ?? []), tag] };
      return (
        subject === "key"
          ? read("analytics.getKeyStats", { keyId: key!, ...narrowed })
          : subject === "owner"
            ? read("analytics.getIdentityStats", { identity: owner!, ...narrowed })
            : read("analytics.getApiStats", { apiId: api!, ...narrowed })
      ) as ReturnType<typeof read<"analytics.getApiStats">>;
    }),
  });

  const error =
    all.error ??
    chosen?.error ??
    [topKeys, ownKeys, owners, ...keyStats, ...ownerStats, ...tagStats].find(({ error }) => error)?.error ??
    null;
  const shown = { sum, error, lacks: subject === "all" ? all.lacks : undefined };
  switch (by) {
    case "code":
      return { ...shown, groups: undefined };
    case "api":
      if (subject !== "all") return { ...shown, groups: [], note: "Remove the filters to compare APIs." };
      return {
        ...shown,
        groups: all.isPending
          ? undefined
          : all.subjects.flatMap(({ subject: { apiId, name }, stats }) =>
              stats ? [{ id: apiId, label: name, stats, narrow: { api: apiId } }] : [],
            ),
        note: all.isCut ? `The first ${SUBJECTS_MAX} APIs.` : undefined,
      };
    case "key":
      if (!wantsKeys && !wantsOwnKeys) return { ...shown, groups: [], note: "Choose an API to compare its keys." };
      return {
        ...shown,
        groups:
          keys === undefined || keyStats.some(({ isPending }) => isPending)
            ? undefined
            : keys.flatMap(({ keyId, name, start, apiId = api }, index) => {
                const stats = keyStats[index]?.data;
                const narrow = { key: keyId, ...(apiId !== undefined && { api: apiId }) };
                return stats ? [{ id: keyId, label: name ?? (start ? `${start}…` : keyId), stats, narrow }] : [];
              }),
        note: wantsOwnKeys ? `The ${SUBJECTS_MAX} newest keys of the owner.` : noteOf(topKeys.data, "keys"),
      };
    case "owner":
      if (!wantsOwners) return { ...shown, groups: [], note: "Remove the filters to compare owners." };
      return {
        ...shown,
        groups:
          owners.isPending || ownerStats.some(({ isPending }) => isPending)
            ? undefined
            : (owners.data?.identities ?? []).flatMap(({ identityId, externalId = identityId }, index) => {
                const stats = ownerStats[index]?.data;
                return stats ? [{ id: identityId, label: externalId, stats, narrow: { owner: externalId } }] : [];
              }),
        note: noteOf(owners.data, "owners"),
      };
    case "tag":
      if (subject === "all")
        return { ...shown, groups: [], note: "Choose an API, an owner or a key to chart its tags." };
      return {
        ...shown,
        groups:
          chosen?.isPending || tagStats.some(({ isPending }) => isPending)
            ? undefined
            : tagNames.flatMap((tag, index) => {
                const stats = tagStats[index]?.data;
                return stats
                  ? [{ id: tag, label: tag, stats, narrow: { tags: [...(tags ?? []), tag].join(" ") } }]
                  : [];
              }),
        note: `The ${TAGS_MAX} most frequent tags. A verification with several tags counts in each of them.`,
      };
  }
}

/** What a ranking leaves out. */
function noteOf(ranking: { incompleteBefore?: number } | undefined, what: string): string {
  const busiest = `The ${SUBJECTS_MAX} busiest ${what}`;
  return ranking?.incompleteBefore === undefined
    ? `${busiest} at most.`
    : `${busiest}, ranked from ${localTime(ranking.incompleteBefore)} on: there are too many before.`;
}
