import type { DeclaredCommand, Flag } from "./declared.ts";

/** The command line of a call with this body, for a shell. */
export function exampleCommand({ words, flags }: Pick<DeclaredCommand, "words" | "flags">, body: unknown): string {
  return ["latchkey", ...words, ...exampleArguments(flags, body).map(quoted)].join(" ");
}

/** The flags that give this body. */
export function exampleArguments(flags: readonly Flag[], body: unknown): string[] {
  if (Array.isArray(body)) return body.flatMap((entry) => ["--entry", JSON.stringify(entry)]);
  return flags.flatMap((flag) => {
    const value = flag.path
      .split(".")
      .reduce<unknown>((member, name) => (member as Record<string, unknown> | null | undefined)?.[name], body);
    const isSplit = typeof value === "object" && value !== null && !Array.isArray(value) && flag.kind === "json";
    if (value === undefined || isSplit) return [];
    if (flag.kind === "list" && flag.commas && Array.isArray(value) && value.length > 0)
      return [`--${flag.name}`, value.join(",")];
    if (Array.isArray(value) && value.length > 0) {
      return value.flatMap((item) => [`--${flag.name}`, typeof item === "string" ? item : JSON.stringify(item)]);
    }
    return [`--${flag.name}`, typeof value === "string" ? value : JSON.stringify(value)];
  });
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
