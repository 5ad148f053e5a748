import schema from "virtual:operation/portal.createSession";
import { useQuery } from "@tanstack/react-query";
import { type Input, read } from "../../api/client.ts";
import { DAY } from "../../api/format.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { TagsField, TextField } from "../../ui/fields/fields.tsx";

/** The limits on the keys of a session, as they are entered. */
export interface KeyLimits {
  readonly max: string;
  readonly prefixes: readonly string[];
  readonly days: string;
  readonly roles: readonly string[];
}
export const noLimits: KeyLimits = { max: "", prefixes: [], days: "", roles: [] };

export function KeyLimitFields({
  value: limits,
  onChange,
  problem,
}: {
  value: KeyLimits;
  onChange: (limits: KeyLimits) => void;
  problem: string | undefined;
}) {
  const can = useCan();
  const roles = useQuery({ ...read("permissions.listRoles", { limit: 100 }), enabled: can("permissions.*.read_role") });
  const change = (changed: Partial<KeyLimits>) => onChange({ ...limits, ...changed });
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Keys at most"
          description="In this API, without expired ones. Empty: 10."
          type="number"
          value={limits.max}
          onChange={(max) => change({ max })}
        />
        <TextField
          label="Longest life of a new key, in days"
          description="Empty: a new key needs no expiry."
          type="number"
          value={limits.days}
          onChange={(days) => change({ days })}
        />
      </div>
      <TagsField
        label="Prefixes to choose from"
        description="The default first. Empty: that of the API."
        value={limits.prefixes}
        onChange={(prefixes) => change({ prefixes })}
        placeholder="live"
      />
      <TagsField
        label="Roles that a new key may have"
        description="It has all of them by default: this is how new keys get permissions."
        value={limits.roles}
        onChange={(roles) => change({ roles })}
        suggestions={roles.data?.map(({ name }) => name) ?? []}
      />
      {problem && <p className="text-xs text-bad">{problem}</p>}
    </>
  );
}

/** The limits of the input, or why they cannot be used. */
export function keysOf({ max, prefixes, days, roles }: KeyLimits) {
  const declared = member(schema, "keys");
  const value: NonNullable<Input<"portal.createSession">["keys"]> = {
    ...(max !== "" && { max: Number(max) }),
    ...(prefixes.length > 0 && { prefixes }),
    ...(days !== "" && { expiresInMax: Number(days) * DAY }),
    ...(roles.length > 0 && { roles }),
  };
  const { items: ofPrefix = {} } = member(declared, "prefixes");
  const wrongPrefix = prefixes.find((prefix) => textProblem(ofPrefix, prefix));
  const problem =
    (value.max !== undefined && numberProblem(member(declared, "max"), value.max)) ||
    (value.expiresInMax !== undefined &&
      numberProblem(member(declared, "expiresInMax"), value.expiresInMax) &&
      "The longest life of a key must be a number of days.") ||
    (wrongPrefix && `${wrongPrefix} is no prefix.`) ||
    undefined;
  return { value, problem };
}
