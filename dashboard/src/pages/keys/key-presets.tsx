import { Coins, FlaskConical, Hourglass, type LucideIcon, Zap } from "lucide-react";
import { DAY } from "../../api/format.ts";
import { classes } from "../../ui/classes.ts";
import { newRatelimit } from "../../ui/fields/ratelimits-field.tsx";
import { noCredits } from "./credits-field.tsx";
import type { Draft } from "./key-draft.ts";

const presets = [
  { id: "live", label: "Live", about: "For production", icon: Zap, prefix: "live", draft: () => ({}) },
  {
    id: "test",
    label: "Test",
    about: "60 requests a minute",
    icon: FlaskConical,
    prefix: "test",
    draft: () => ({ ratelimits: [{ ...newRatelimit, limit: "60" }] }),
  },
  {
    id: "trial",
    label: "Trial",
    about: "14 days, 1,000 calls",
    icon: Hourglass,
    prefix: "trial",
    draft: () => ({
      expires: Math.ceil(Date.now() / 60_000) * 60_000 + 14 * DAY,
      credits: { ...noCredits, isLimited: true },
      ratelimits: [{ ...newRatelimit, limit: "30" }],
    }),
  },
  {
    id: "paid",
    label: "Paid by credit",
    about: "10,000 a month",
    icon: Coins,
    prefix: "live",
    draft: () => ({
      credits: { ...noCredits, isLimited: true, remaining: "10000", interval: "monthly" as const, amount: "10000" },
    }),
  },
] satisfies {
  id: string;
  label: string;
  about: string;
  icon: LucideIcon;
  /** What keys begin with that have no prefix of their API. */
  prefix: string;
  draft: () => Partial<Draft>;
}[];

/**
 * What a key can begin with. A preset sets expiry, credits and limits, and keeps what was entered. The prefix of the API
 * stays: its leak kit looks for keys with it.
 */
export function KeyPresets({
  draft,
  apiPrefix,
  chosen,
  onChoose,
}: {
  draft: Draft;
  apiPrefix: string | undefined;
  chosen: string | undefined;
  onChoose: (id: string, draft: Draft) => void;
}) {
  const prefixOf = (suggested: string) => {
    const isSuggested = draft.prefix === "" || presets.some(({ prefix }) => prefix === draft.prefix);
    return apiPrefix === undefined && isSuggested ? suggested : draft.prefix;
  };
  return (
    <fieldset>
      <legend className="label mb-1.5">Begin with</legend>
      <div className="grid grid-cols-2 gap-2 sm:grid-cols-4">
        {presets.map(({ id, label, about, icon: Icon, prefix, draft: make }) => (
          <button
            key={id}
            type="button"
            aria-pressed={chosen === id}
            onClick={() =>
              onChoose(id, {
                ...draft,
                expires: undefined,
                credits: noCredits,
                ratelimits: [],
                concurrency: [],
                ...make(),
                prefix: prefixOf(prefix),
              })
            }
            className={classes(
              "flex flex-col items-start rounded-md border px-3 py-2 text-left",
              chosen === id ? "border-accent bg-accent-soft" : "border-line hover:bg-hover",
            )}
          >
            <span className="flex items-center gap-1.5 font-medium">
              <Icon aria-hidden className="size-4 text-accent" />
              {label}
            </span>
            <span className="text-xs text-quiet">{about}</span>
          </button>
        ))}
      </div>
    </fieldset>
  );
}
