import { exactNumber, shortNumber } from "../../api/format.ts";

/** A number, shortened if it is large, with the exact one on hover. */
export function Count({ value }: { value: number }) {
  const [short, exact] = [shortNumber(value), exactNumber(value)];
  return (
    <span className="tabular-nums" title={short === exact ? undefined : exact}>
      {short}
    </span>
  );
}
