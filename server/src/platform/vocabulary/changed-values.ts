import type { LimitMode } from "../../../../engine/src/rules/strict-window.ts";
import type { EventContent } from "../store/events/events.ts";
import { type EventData, type EventType, eventTypes } from "../store/events/types.ts";

/** Characters of the JSON of a value in an audit event. */
export const VALUE_LENGTH_MAX = 1_000;

/**
 * The values that an update changes, as members of its audit event: `before` and `after` have the members whose values
 * differ. Absent if none does. Never call it with a secret or its hash.
 *
 * @param after the values that the update sets, null for a value that it removes; undefined members are not set.
 * @param before the values of at least the same members, null for none.
 */
export function changedValues<Values extends object>(
  after: Values,
  before: { readonly [Name in keyof Values]-?: unknown },
): { before?: Record<string, unknown>; after?: Record<string, unknown> } {
  const names = Object.keys(after).filter((name) => {
    const value = after[name as keyof Values];
    return value !== undefined && JSON.stringify(value) !== JSON.stringify(before[name as keyof Values] ?? null);
  });
  if (names.length === 0) return {};
  const recorded = (values: object) =>
    Object.fromEntries(names.map((name) => [name, boundedValue((values as Record<string, unknown>)[name] ?? null)]));
  return { before: recorded(before), after: recorded(after) };
}

/**
 * The events of an update: one with the names of the members that changed, and for `enabled` an event of its own where the
 * kind has one.
 *
 * @param after the new values of the members that changed, as `changedValues` gives them.
 */
export function updateEvents<Kind extends UpdatedKind>(
  kind: Kind,
  objectId: string,
  data: Omit<EventData<`${Kind}.updated`>, "actor" | "changed">,
  after: Readonly<Record<string, unknown>> = {},
): EventContent[] {
  const hasSwitch = `${kind}.disabled` in eventTypes;
  const changed = Object.keys(after).filter((name) => !(hasSwitch && name === "enabled"));
  const { enabled } = after;
  return [
    ...(changed.length > 0 ? [{ type: `${kind}.updated`, objectId, data: { ...data, changed } }] : []),
    ...(hasSwitch && enabled !== undefined
      ? [{ type: `${kind}.${enabled ? "enabled" : "disabled"}`, objectId, data }]
      : []),
  ] as EventContent[];
}

/** Limits of a key or an identity as an event records them: by name, without ids. */
export function limitValues(limits: readonly (Limit & ({ autoApply: boolean } | { auto_apply: 0 | 1 }))[]) {
  return limits
    .map(({ name, limit, duration, mode, shadow, ...rest }) => ({
      name,
      limit,
      duration,
      ...(mode === "strict" && { mode }),
      autoApply: "autoApply" in rest ? rest.autoApply : rest.auto_apply === 1,
      ...((shadow === true || shadow === 1) && { shadow: true as const }),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

type UpdatedKind = EventType extends infer Type ? (Type extends `${infer Kind}.updated` ? Kind : never) : never;

interface Limit {
  readonly name: string;
  readonly limit: number;
  readonly duration: number;
  readonly mode: LimitMode;
  readonly shadow?: boolean | 0 | 1 | undefined;
}

/** A list whose order means nothing. */
export function sortedSet(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}

/** A value as an audit event records it: one whose JSON has more characters than `max` by the beginning of its JSON. */
export function boundedValue(value: unknown, max = VALUE_LENGTH_MAX): unknown {
  const text = JSON.stringify(value);
  return text.length <= max ? value : { beginning: text.slice(0, max), length: text.length };
}
