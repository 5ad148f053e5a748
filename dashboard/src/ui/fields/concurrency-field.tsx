import { Plus, X } from "lucide-react";
import { member, numberProblem, type Schema, textProblem } from "../../api/schema.ts";
import { Button, IconButton } from "../button.tsx";
import { TextField } from "./fields.tsx";

/** A limit of concurrency while it is edited. */
export interface ConcurrencyDraft {
  readonly name: string;
  readonly limit: string;
}

/** A limit of concurrency as an operation takes it. */
export interface ConcurrencyInput {
  name: string;
  limit: number;
}

/** The limits of drafts, or why they cannot be used. `schema`: that of the list. */
export function concurrencyInputs(
  drafts: readonly ConcurrencyDraft[],
  schema: Schema,
): { value: ConcurrencyInput[]; problem?: string } {
  const { items = {} } = schema;
  const value = drafts.map(({ name, limit }) => ({ name, limit: limit.trim() === "" ? Number.NaN : Number(limit) }));
  for (const [index, entry] of value.entries()) {
    const problem =
      textProblem(member(items, "name"), entry.name) ?? numberProblem(member(items, "limit"), entry.limit);
    if (problem) return { value, problem: `${entry.name || `Limit ${index + 1}`}: ${problem}` };
    if (value.findIndex((other) => other.name === entry.name) !== index) {
      return { value, problem: `Two limits are named ${entry.name}.` };
    }
  }
  return { value };
}

/** How many calls of a key or of an identity run at once, as lines. */
export function ConcurrencyField({
  value,
  onChange,
  problem,
  max,
}: {
  value: readonly ConcurrencyDraft[];
  onChange: (value: ConcurrencyDraft[]) => void;
  problem?: string | undefined;
  /** The most limits that there can be. */
  max: number | undefined;
}) {
  const set = (index: number, change: Partial<ConcurrencyDraft>) =>
    onChange(value.map((limit, at) => (at === index ? { ...limit, ...change } : limit)));
  return (
    <div className="space-y-3">
      {value.map((limit, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity while their names are typed.
        <fieldset key={index} className="grid grid-cols-[minmax(0,2fr)_minmax(0,1fr)_2rem] items-end gap-2">
          <legend className="sr-only">{`Calls at once: ${limit.name || index + 1}`}</legend>
          <TextField label="Name of the slots" value={limit.name} onChange={(name) => set(index, { name })} />
          <TextField
            label="Calls at once"
            type="number"
            value={limit.limit}
            onChange={(limit) => set(index, { limit })}
          />
          <IconButton
            label={`Remove the limit ${limit.name}`}
            onPress={() => onChange(value.filter((_, at) => at !== index))}
          >
            <X aria-hidden />
          </IconButton>
        </fieldset>
      ))}
      {problem && <p className="text-xs text-bad">{problem}</p>}
      <Button
        offBecause={max !== undefined && value.length >= max && `There can be ${max} limits`}
        onPress={() => onChange([...value, { name: freeName(value), limit: "10" }])}
      >
        <Plus aria-hidden />
        Limit calls at once
      </Button>
    </div>
  );
}

function freeName(limits: readonly ConcurrencyDraft[]): string {
  const nameOf = (number: number) => (number === 1 ? "calls" : `calls-${number}`);
  let number = 1;
  while (limits.some(({ name }) => name === nameOf(number))) number++;
  return nameOf(number);
}
