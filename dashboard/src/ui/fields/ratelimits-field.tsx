import { Plus, X } from "lucide-react";
import { SHADOW_PROMISE, STRICT_PROMISE } from "../../api/limit-text.ts";
import { numberProblem, type Schema, textProblem } from "../../api/schema.ts";
import { Button, IconButton } from "../button.tsx";
import { Switch, TextField } from "./fields.tsx";
import { Select } from "./select.tsx";

/** A limit while it is edited. */
export interface RatelimitDraft {
  readonly name: string;
  readonly limit: string;
  readonly count: string;
  readonly unit: Unit;
  readonly mode: Mode;
  readonly autoApply: boolean;
  readonly shadow: boolean;
}
type Mode = "standard" | "strict";
type Unit = keyof typeof units;
const units = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** A limit as an operation takes it. */
export interface RatelimitInput {
  name: string;
  limit: number;
  duration: number;
  mode?: Mode;
  autoApply: boolean;
  shadow?: boolean;
}

/** What a new limit begins with. */
export const newRatelimit: RatelimitDraft = {
  name: "requests",
  limit: "100",
  count: "1",
  unit: "minute",
  mode: "standard",
  autoApply: true,
  shadow: false,
};

/** A stored limit, to edit it. */
export function ratelimitDraft({
  name,
  limit,
  duration,
  mode = "standard",
  autoApply,
  shadow = false,
}: RatelimitInput): RatelimitDraft {
  const unit = (["day", "hour", "minute"] as const).find((unit) => duration % units[unit] === 0) ?? "second";
  return { name, limit: String(limit), count: String(duration / units[unit]), unit, mode, autoApply, shadow };
}

/** The limits of drafts, or why they cannot be used. `schema`: that of one limit. */
export function ratelimitInputs(
  drafts: readonly RatelimitDraft[],
  schema: Schema,
): { value: RatelimitInput[]; problem?: string } {
  const value = drafts.map(({ name, mode, autoApply, shadow, ...window }) => ({
    name,
    ...windowOf(window),
    mode,
    autoApply,
    ...(shadow && { shadow }),
  }));
  const { name, limit, duration } = schema.properties!;
  for (const [index, entry] of value.entries()) {
    const problem = textProblem(name!, entry.name) ?? numberProblem(limit!, entry.limit);
    if (problem) return { value, problem: `${entry.name || `Limit ${index + 1}`}: ${problem}` };
    if (numberProblem(duration!, entry.duration)) {
      return { value, problem: `${entry.name}: the window must be between 1 second and 366 days.` };
    }
    if (value.findIndex((other) => other.name === entry.name) !== index) {
      return { value, problem: `Two limits are named ${entry.name}.` };
    }
  }
  return { value };
}

function number(text: string): number {
  return text.trim() === "" ? Number.NaN : Number(text);
}

/** A number of calls and the window in which they are counted, while they are edited. */
export type WindowDraft = Pick<RatelimitDraft, "limit" | "count" | "unit">;

/** The limit and the duration of a draft. Not a number: the field is empty or holds no number. */
export function windowOf({ limit, count, unit }: WindowDraft): { limit: number; duration: number } {
  return { limit: number(limit), duration: Math.round(number(count) * units[unit]) };
}

/** Three fields in a grid: the limit, the count of units and the unit. */
export function WindowFields({
  value: { limit, count, unit },
  onChange,
}: {
  value: WindowDraft;
  onChange: (change: Partial<WindowDraft>) => void;
}) {
  return (
    <>
      <TextField label="At most" type="number" value={limit} onChange={(limit) => onChange({ limit })} />
      <TextField label="In" type="number" value={count} onChange={(count) => onChange({ count })} />
      <Select
        label="Unit"
        value={unit}
        onChange={(unit) => onChange({ unit })}
        options={(Object.keys(units) as Unit[]).map((unit) => ({ value: unit, label: `${unit}s` }))}
      />
    </>
  );
}

/** Whether a limit is strict, and what that promises. */
export function StrictSwitch({ value, onChange }: { value: Mode; onChange: (mode: Mode) => void }) {
  return (
    <Switch
      label="Strict"
      description={`${STRICT_PROMISE} Off: an estimate, so that a trailing window may have up to twice the limit.`}
      value={value === "strict"}
      onChange={(isStrict) => onChange(isStrict ? "strict" : "standard")}
    />
  );
}

/** Limits of a key or of an identity, as lines. */
export function RatelimitsField({
  value,
  onChange,
  problem,
  alwaysApply = false,
}: {
  value: readonly RatelimitDraft[];
  onChange: (value: RatelimitDraft[]) => void;
  problem?: string | undefined;
  /** Every verification is charged, as with the limits of identities. */
  alwaysApply?: boolean;
}) {
  const set = (index: number, change: Partial<RatelimitDraft>) =>
    onChange(value.map((limit, at) => (at === index ? { ...limit, ...change } : limit)));
  return (
    <div className="space-y-3">
      {value.map((limit, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity while their names are typed.
        <fieldset key={index} className="rounded-md border border-line p-3">
          <legend className="sr-only">{`Limit ${limit.name || index + 1}`}</legend>
          <div className="grid grid-cols-2 items-end gap-2 sm:grid-cols-[minmax(0,2fr)_minmax(0,1fr)_minmax(0,1fr)_8rem_2rem]">
            <TextField label="Limit name" value={limit.name} onChange={(name) => set(index, { name })} />
            <WindowFields value={limit} onChange={(change) => set(index, change)} />
            <IconButton
              label={`Remove the limit ${limit.name}`}
              onPress={() => onChange(value.filter((_, at) => at !== index))}
            >
              <X aria-hidden />
            </IconButton>
          </div>
          <div className="mt-3 space-y-3">
            <StrictSwitch value={limit.mode} onChange={(mode) => set(index, { mode })} />
            {!alwaysApply && (
              <Switch
                label="Charge every verification"
                description="Off: only verifications that name the limit are charged."
                value={limit.autoApply}
                onChange={(autoApply) => set(index, { autoApply })}
              />
            )}
            <Switch
              label="Shadow mode"
              description={SHADOW_PROMISE}
              value={limit.shadow}
              onChange={(shadow) => set(index, { shadow })}
            />
          </div>
        </fieldset>
      ))}
      {problem && <p className="text-xs text-bad">{problem}</p>}
      <Button onPress={() => onChange([...value, { ...newRatelimit, name: freeName(value) }])}>
        <Plus aria-hidden />
        Add limit
      </Button>
    </div>
  );
}

function freeName(limits: readonly RatelimitDraft[]): string {
  const names = ["requests", "writes", "tokens"];
  return names.find((name) => limits.every((limit) => limit.name !== name)) ?? `limit-${limits.length + 1}`;
}
