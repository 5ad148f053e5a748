import type { AuditEvent } from "@latchkey/sdk";
import { changesOf, text } from "./changes.ts";

/** What an event changed, value by value. */
export function ChangesTable({ of: event }: { of: Pick<AuditEvent, "action" | "meta"> }) {
  const changes = changesOf(event);
  if (changes.length === 0) return <p className="text-quiet">The event has no values.</p>;
  return (
    <table className="w-full table-fixed border-collapse text-left text-xs">
      <thead>
        <tr className="border-b border-line">
          <th className="w-24 py-1 pr-2 font-medium text-quiet">Member</th>
          <th className="py-1 pr-2 font-medium text-quiet">Before</th>
          <th className="py-1 font-medium text-quiet">After</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ member, before, after }, index) => {
          const none = before === undefined && after === undefined ? "not recorded" : "–";
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: the changes of an event do not change.
            <tr key={index} className="border-b border-line align-top">
              <th scope="row" className="py-1.5 pr-2 font-normal break-words">
                {member}
              </th>
              <td className="py-1.5 pr-2 font-mono break-words">
                {before === undefined ? (
                  <span className="text-quiet">{none}</span>
                ) : (
                  <del className="rounded-sm bg-bad-soft px-1 text-bad no-underline">{text(member, before)}</del>
                )}
              </td>
              <td className="py-1.5 font-mono break-words">
                {after === undefined ? (
                  <span className="text-quiet">{none}</span>
                ) : (
                  <ins className="rounded-sm bg-good-soft px-1 text-good no-underline">{text(member, after)}</ins>
                )}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
