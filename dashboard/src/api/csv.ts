import { call, type Input, type ListPage, type OperationName } from "./client.ts";

/** The most rows of a file. */
const ROWS_MAX = 10_000;

/** Rows as lines of CSV. */
export function csvText(rows: readonly (readonly unknown[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(",")}\r\n`).join("");
}

/** Objects as lines of CSV below the names of their members: times as ISO 8601, lists and objects as JSON. */
export function csvOfObjects(objects: readonly object[]): string {
  const members = [...new Set(objects.flatMap((one) => Object.keys(one)))];
  const rows = objects.map((one) =>
    members.map((member) => memberText(member, (one as Record<string, unknown>)[member])),
  );
  return csvText([members, ...rows]);
}

/** Members that are a time: `createdAt`, `expires`. */
const TIME = /(^(at|time|expires|start|end)|At)$/;

function memberText(member: string, value: unknown): unknown {
  if (typeof value === "number" && TIME.test(member)) return new Date(value).toISOString();
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}

/** Reads a list, at most 10,000 rows, and says whether it has more. */
export async function readAll<Name extends OperationName>(
  name: Name,
  input: Omit<Input<Name>, "cursor">,
  entriesOf: (data: unknown) => readonly object[],
): Promise<{ rows: readonly object[]; hasMore: boolean }> {
  const rows: object[] = [];
  let cursor: string | undefined;
  do {
    const { data, pagination } = (await call(name, {
      ...input,
      limit: 100,
      ...(cursor && { cursor }),
    } as unknown as Input<Name>)) as unknown as {
      data: unknown;
      pagination?: ListPage<unknown>["pagination"];
    };
    rows.push(...entriesOf(data));
    cursor = pagination?.cursor ?? (data as { cursor?: string }).cursor;
  } while (cursor !== undefined && rows.length < ROWS_MAX);
  return { rows: rows.slice(0, ROWS_MAX), hasMore: cursor !== undefined || rows.length > ROWS_MAX };
}

/** A value as a cell of CSV. */
function cellText(value: unknown): string {
  const text = value === undefined || value === null ? "" : String(value);
  // A spreadsheet would run a name such as =HYPERLINK(…) as a formula. A number is none.
  const safe = typeof value !== "number" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Saves lines of CSV as a file of the browser. */
export function saveCsv(text: string, name: string): void {
  save(text, `${name.toLowerCase().replaceAll(/[^\w-]+/g, "-")}.csv`, "text/csv");
}

/** Saves a text as a file of the browser. */
export function save(text: string, name: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
