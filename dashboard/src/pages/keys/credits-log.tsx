import type { Key } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { read } from "../../api/client.ts";
import { counted, DAY, exactNumber, locale, localTime, utcTime } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { Skeleton } from "../../ui/text/skeleton.tsx";
import { creditsHistory } from "./credits-history.ts";

const DAYS = 30;
const EVENTS_MAX = 100;
const SHOWN = 8;
const days = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" });

/** What the balance of a key rose and fell by: grants, refills, and spends per day. */
export function CreditsLog({ of: { keyId, apiId } }: { of: Key }) {
  const [isWhole, setWhole] = useState(false);
  const can = useCan();
  const needs = { events: "audit.*.read_event", days: `apis.${apiId}.read_analytics` };
  const lacks = Object.values(needs).filter((permission) => !can(permission));
  const end = Math.ceil(Date.now() / DAY) * DAY;
  const start = end - DAYS * DAY;
  const events = useQuery({
    ...read("audit.listEvents", { target: keyId, limit: EVENTS_MAX }),
    enabled: can(needs.events),
  });
  const stats = useQuery({
    ...read("analytics.getKeyStats", { keyId, start, end, granularity: "day" }),
    enabled: can(needs.days),
  });
  const entries = useMemo(
    () => creditsHistory(events.data ?? [], stats.data?.series ?? [], start),
    [events.data, stats.data, start],
  );
  const error = events.error ?? stats.error;
  if (error) return <ErrorBox error={error} />;
  if ((can(needs.events) && !events.data) || (can(needs.days) && !stats.data)) return <Skeleton lines={3} />;
  return (
    <>
      {entries.length === 0 ? (
        <p className="text-quiet">Nothing in the last {DAYS} days.</p>
      ) : (
        <table aria-label="History of the credits" className="w-full max-w-2xl text-left text-xs">
          <thead>
            <tr className="border-b border-line [&>th]:py-1 [&>th]:pr-3 [&>th]:whitespace-nowrap [&>th]:last:pr-0 [&>th]:font-medium [&>th]:text-quiet">
              <th>Time</th>
              <th>What</th>
              <th className="text-right">Change</th>
              <th className="text-right">Balance</th>
            </tr>
          </thead>
          <tbody>
            {entries.slice(0, isWhole ? undefined : SHOWN).map(({ id, at, isDay, what, by, balance }) => (
              <tr key={id} className="border-b border-line tabular-nums [&>td]:py-1 [&>td]:pr-3 [&>td]:last:pr-0">
                <td className="text-quiet" title={utcTime(at)}>
                  {isDay ? `${days.format(at)} (UTC)` : localTime(at)}
                </td>
                <td>{what}</td>
                <td className="text-right">
                  {by === undefined ? "" : `${by > 0 ? "+" : "−"}${exactNumber(Math.abs(by))}`}
                </td>
                <td className="text-right">
                  {balance === undefined ? "" : balance === null ? "unlimited" : exactNumber(balance)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p className="mt-1.5 text-xs text-quiet">
        The last {DAYS} days of this key: what it spent per day, and what changed its balance.
        {lacks.length > 0 && ` Some of it needs ${lacks.join(" and ")}.`}
      </p>
      {entries.length > SHOWN && !isWhole && (
        <div className="mt-2">
          <Button onPress={() => setWhole(true)}>
            Show {counted(entries.length - SHOWN, "older entry", "older entries")}
          </Button>
        </div>
      )}
    </>
  );
}
