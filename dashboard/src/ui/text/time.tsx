import { localTime, relativeTime, utcTime } from "../../api/format.ts";

/** A moment in the zone of the viewer, with UTC on hover. `relative`: its distance from now instead. */
export function Time({ at, relative = false }: { at: number; relative?: boolean }) {
  return (
    <time
      dateTime={new Date(at).toISOString()}
      title={relative ? `${localTime(at)}\n${utcTime(at)}` : utcTime(at)}
      className="whitespace-nowrap tabular-nums"
    >
      {relative ? relativeTime(at) : localTime(at)}
    </time>
  );
}
