import type { Api } from "@latchkey/sdk";
import { duration } from "../../api/format.ts";
import { Switch, TextField } from "../../ui/fields/fields.tsx";
import { type Change, InlineEdit } from "../../ui/fields/inline-edit.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";
import type { useSetting } from "./setting.ts";

type KeyPolicy = NonNullable<Api["policy"]>;

const DAY = 86_400_000;
const DAYS_MAX = 47_482;

/** A policy as it is edited. */
interface Draft {
  readonly usual: string;
  readonly max: string;
  readonly limitsRequired: boolean;
  readonly prefixFixed: boolean;
}

/** What new keys of an API must have. */
export function Policy({ of: api, setting }: { of: Api; setting: ReturnType<typeof useSetting> }) {
  const { policy = {} } = api;
  return (
    <Facts>
      <Fact name="New keys must have">
        <InlineEdit<Draft>
          {...setting("policy")}
          label="the policy"
          display={<Rules of={policy} prefix={api.prefix} />}
          draft={() => ({
            usual: inDays(policy.expiry?.default),
            max: inDays(policy.expiry?.max),
            limitsRequired: policy.limitsRequired ?? false,
            prefixFixed: policy.prefixFixed ?? false,
          })}
          change={(draft) => changeOf(draft, policy)}
          editor={(draft, set) => (
            <div className="space-y-3">
              <TextField
                label="Expiry of keys that are created without one, in days"
                description="Empty: none."
                type="number"
                value={draft.usual}
                onChange={(usual) => set({ ...draft, usual })}
                autoFocus
              />
              <TextField
                label="Longest life of a key, in days"
                description="From its creation. Empty: keys may live forever."
                type="number"
                value={draft.max}
                onChange={(max) => set({ ...draft, max })}
              />
              <Switch
                label="Each key needs a limit, its own or one of its plan or identity"
                value={draft.limitsRequired}
                onChange={(limitsRequired) => set({ ...draft, limitsRequired })}
              />
              <Switch
                label="Each key has the prefix of the API"
                value={draft.prefixFixed}
                onChange={(prefixFixed) => set({ ...draft, prefixFixed })}
              />
            </div>
          )}
        />
        <p className="mt-1 text-xs text-quiet">
          Keys that are older than a rule stay as they are. The overview names those that do not obey it.
        </p>
      </Fact>
    </Facts>
  );
}

function Rules({ of: { expiry, limitsRequired, prefixFixed }, prefix }: { of: KeyPolicy; prefix: string | undefined }) {
  const rules = [
    ...(expiry?.max === undefined ? [] : [`an expiry, at most ${duration(expiry.max)} after their creation`]),
    ...(expiry?.default === undefined
      ? []
      : [`the expiry ${duration(expiry.default)}, if they are created without one`]),
    ...(limitsRequired ? ["a limit, their own or one of their plan or identity"] : []),
    ...(prefixFixed ? [prefix === undefined ? "no prefix" : `the prefix ${prefix}_`] : []),
  ];
  if (rules.length === 0) return <None />;
  return (
    <ul>
      {rules.map((rule) => (
        <li key={rule}>{rule}</li>
      ))}
    </ul>
  );
}

function changeOf(draft: Draft, policy: KeyPolicy): Change {
  const [usual, max] = [lengthOf(draft.usual), lengthOf(draft.max)];
  const problem = [usual, max].some((length) => length !== undefined && !(length >= 60_000 && length <= DAYS_MAX * DAY))
    ? `Enter a number of days, at most ${DAYS_MAX.toLocaleString("en")}.`
    : usual !== undefined && max !== undefined && usual > max
      ? "The expiry is later than the longest life."
      : undefined;
  const expiry = { ...(usual !== undefined && { default: usual }), ...(max !== undefined && { max }) };
  const next: KeyPolicy = {
    ...(Object.keys(expiry).length > 0 && { expiry }),
    ...(draft.limitsRequired && { limitsRequired: true }),
    ...(draft.prefixFixed && { prefixFixed: true }),
  };
  const isSame = JSON.stringify(shapeOf(next)) === JSON.stringify(shapeOf(policy));
  return { ...(!isSame && { value: Object.keys(next).length === 0 ? null : next }), ...(problem && { problem }) };
}

/** What a policy says, in one order. */
function shapeOf({ expiry, limitsRequired, prefixFixed }: KeyPolicy) {
  return [expiry?.default ?? null, expiry?.max ?? null, limitsRequired ?? false, prefixFixed ?? false];
}

function inDays(length: number | undefined): string {
  return length === undefined ? "" : String(length / DAY);
}

function lengthOf(days: string): number | undefined {
  return days === "" ? undefined : Math.round(Number(days) * DAY);
}
