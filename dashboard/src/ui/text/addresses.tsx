import { None } from "../page.tsx";

/** The addresses that may use a key, or the keys of an API. */
export function Addresses({ of: addresses = [], none }: { of: readonly string[] | undefined; none: string }) {
  if (addresses.length === 0) return <None text={none} />;
  return (
    <span className="flex flex-wrap gap-1.5">
      {addresses.map((address) => (
        <code key={address} className="rounded-sm bg-field px-1.5 py-0.5 font-mono text-xs">
          {address}
        </code>
      ))}
    </span>
  );
}
