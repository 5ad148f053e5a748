import type { PoolName, Procedure, Procedures, SqlFunction } from "./store.ts";

/** The procedures of one part of the program. */
type Part = Pick<Procedures, "reading" | "writing" | "functions" | "pools">;

type Intersection<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;

/** The procedures of all parts, by name. Throws if two have the same name. */
export function joinProcedures<Parts extends readonly Part[]>(...parts: Parts) {
  const reading = joined<Procedure>(parts.map((part) => part.reading));
  const writing = joined<Procedure>(parts.map((part) => part.writing));
  return {
    reading: reading as Intersection<Parts[number]["reading"]>,
    writing: writing as Intersection<Parts[number]["writing"]>,
    functions: joined<SqlFunction>(parts.map((part) => part.functions ?? {})),
    pools: joined<PoolName>(parts.map((part) => part.pools ?? {})),
  };
}

function joined<Value>(parts: readonly Readonly<Record<string, Value>>[]): Record<string, Value> {
  const all: Record<string, Value> = {};
  for (const [name, value] of parts.flatMap((part) => Object.entries(part))) {
    if (name in all) throw new Error(`Two procedures are named ${name}`);
    all[name] = value;
  }
  return all;
}
