/** A workspace and a subject: up to where a merge has come. The order is that of the primary keys of segments and runs. */
export type Place = readonly [workspaceId: string, subject: string];

/** The place before all others, as text. */
export const START = " ";

/** The place with a text; ids have no space. */
export function placeOf(text: string): Place {
  const space = text.indexOf(" ");
  return [text.slice(0, space), text.slice(space + 1)];
}

export function textOf([workspaceId, subject]: Place): string {
  return `${workspaceId} ${subject}`;
}

export function isAfter(workspaceId: string, subject: string, place: Place): boolean {
  return workspaceId === place[0] ? subject > place[1] : workspaceId > place[0];
}
