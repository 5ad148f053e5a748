import schema from "virtual:operation/keys.updateKey";
import type { Key } from "@latchkey/sdk";
import { type Input, useCall } from "../../api/client.ts";
import { member, textProblem } from "../../api/schema.ts";
import { Code } from "../../ui/code-snippet.tsx";
import { ExpiryField } from "../../ui/expiry-field.tsx";
import { TextField } from "../../ui/fields.tsx";
import { type Change, InlineEdit } from "../../ui/inline-edit.tsx";
import { JsonField, parseObject } from "../../ui/json-field.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";
import { Time } from "../../ui/time.tsx";

/** Saves one member of a key. */
export function useKeyUpdate({
  keyId,
}: Key): (field: keyof Input<"keys.updateKey">) => (value: unknown) => Promise<unknown> {
  const { mutateAsync } = useCall("keys.updateKey");
  return (field) => (value) => mutateAsync({ keyId, [field]: value });
}

/** The plain members of a key, edited in place. */
export function KeyOverview({ of: key }: { of: Key }) {
  const update = useKeyUpdate(key);
  const needs = `apis.${key.apiId}.update_key`;
  const text = (field: "name" | "externalId", before: string | undefined) => ({
    field,
    needs,
    draft: () => before ?? "",
    change: (draft: string): Change => {
      const value = draft.trim();
      if (value === (before ?? "")) return {};
      return value === "" ? { value: null } : { value, problem: textProblem(member(schema, field), value) };
    },
    save: update(field),
  });
  const meta = key.meta === undefined ? "" : JSON.stringify(key.meta, null, 2);
  return (
    <Facts>
      <Fact name="Name">
        <InlineEdit
          label="the name"
          {...text("name", key.name)}
          display={key.name ?? <None />}
          editor={(draft, set) => (
            <TextField label="Name" value={draft} onChange={set} autoFocus description="Empty: no name." />
          )}
        />
      </Fact>
      <Fact name="Owner">
        <InlineEdit
          label="the owner"
          {...text("externalId", key.identity?.externalId)}
          display={key.identity?.externalId ?? <None />}
          editor={(draft, set) => (
            <TextField
              label="Owner"
              value={draft}
              onChange={set}
              autoFocus
              description="Your own id of the user or company. Empty: the key belongs to nobody; the identity stays."
            />
          )}
        />
      </Fact>
      <Fact name="Expires">
        <InlineEdit
          label="when it expires"
          field="expires"
          needs={needs}
          display={key.expires === undefined ? <None text="never" /> : <Time at={key.expires} />}
          draft={() => key.expires}
          change={(draft) => (draft === key.expires ? {} : { value: draft ?? null })}
          editor={(draft, set) => <ExpiryField value={draft} onChange={set} />}
          save={update("expires")}
        />
      </Fact>
      <Fact name="Metadata">
        <InlineEdit
          label="the metadata"
          field="meta"
          needs={needs}
          display={meta === "" ? <None /> : <Code text={meta} label="Copy the metadata" />}
          draft={() => meta}
          change={(draft) => {
            const { value, problem } = parseObject(draft);
            if (draft.trim() === meta.trim()) return {};
            return problem === undefined ? { value: value ?? null } : { problem };
          }}
          editor={(draft, set) => (
            <JsonField label="Metadata" value={draft} onChange={set} description="A JSON object. Empty: none." />
          )}
          save={update("meta")}
        />
      </Fact>
      {key.leakedAt !== undefined && (
        <Fact name="Reported as leaked">
          <Time at={key.leakedAt} />
        </Fact>
      )}
      <Fact name="Created">
        <Time at={key.createdAt} />
      </Fact>
      {key.updatedAt !== undefined && (
        <Fact name="Changed">
          <Time at={key.updatedAt} />
        </Fact>
      )}
      <Fact name="Last used">
        {key.lastUsedAt === undefined ? <None text="never" /> : <Time at={key.lastUsedAt} relative />}
      </Fact>
    </Facts>
  );
}
