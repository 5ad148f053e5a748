import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { read } from "../../api/client.ts";
import { useCan } from "../../api/session.ts";

/** The names of root keys by id, as far as the root key may read them. */
export function useActorNames(): ReadonlyMap<string, string> {
  const isAllowed = useCan()("rootKeys.*.read_root_key");
  const { data } = useQuery({
    ...read("rootKeys.listRootKeys", { limit: 100 }),
    enabled: isAllowed,
    staleTime: 60_000,
  });
  return useMemo(() => new Map((data ?? []).map(({ rootKeyId, name }) => [rootKeyId, name || rootKeyId])), [data]);
}

/** Who made a change: the name of the root key if it is known. */
export function Actor({ id, names }: { id: string; names: ReadonlyMap<string, string> }) {
  const name = names.get(id);
  return name === undefined ? (
    <code className="font-mono text-xs">{id}</code>
  ) : (
    <span dir="auto" title={id}>
      {name}
    </span>
  );
}
