import schema from "virtual:operation/keys.createKey";
import type { Secret } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { Coins, FlaskConical, Hourglass, Zap } from "lucide-react";
import { useMemo, useState } from "react";
import { type Input, read, useCall } from "../../api/client.ts";
import { counted, DAY, localDay } from "../../api/format.ts";
import { accepts, member, numberProblem, textProblem } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button } from "../../ui/button.tsx";
import { classes } from "../../ui/classes.ts";
import { Code } from "../../ui/code-snippet.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { ExpiryField } from "../../ui/expiry-field.tsx";
import { Switch, TagsField, TextField } from "../../ui/fields.tsx";
import { Fold } from "../../ui/fold.tsx";
import { JsonField, parseObject } from "../../ui/json-field.tsx";
import { newRatelimit, type RatelimitDraft, RatelimitsField, ratelimitInputs } from "../../ui/ratelimits-field.tsx";
import { CreatedKey } from "./created-key.tsx";
import { type CreditsDraft, CreditsField, creditsInput, noCredits } from "./credits-field.tsx";

interface Draft {
  readonly name: string;
  readonly prefix: string;
  readonly byteLength: string;
  readonly externalId: string;
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
  readonly expires: number | undefined;
  readonly credits: CreditsDraft;
  readonly ratelimits: readonly RatelimitDraft[];
  readonly meta: string;
  readonly enabled: boolean;
  readonly recoverable: boolean;
}

const empty: Draft = {
  name: "",
  prefix: "",
  byteLength: "",
  externalId: "",
  roles: [],
  permissions: [],
  expires: undefined,
  credits: noCredits,
  ratelimits: [],
  meta: "",
  enabled: true,
  recoverable: false,
};

const presets = [
  { id: "live", label: "Live", about: "For production", icon: Zap, draft: () => ({ prefix: "live" }) },
  {
    id: "test",
    label: "Test",
    about: "60 requests a minute",
    icon: FlaskConical,
    draft: () => ({ prefix: "test", ratelimits: [{ ...newRatelimit, limit: "60" }] }),
  },
  {
    id: "trial",
    label: "Trial",
    about: "14 days, 1,000 calls",
    icon: Hourglass,
    draft: () => ({
      prefix: "trial",
      expires: Math.ceil(Date.now() / 60_000) * 60_000 + 14 * DAY,
      credits: { ...noCredits, isLimited: true },
      ratelimits: [{ ...newRatelimit, limit: "30" }],
    }),
  },
  {
    id: "paid",
    label: "Paid by credit",
    about: "10,000 a month",
    icon: Coins,
    draft: () => ({
      prefix: "live",
      credits: { ...noCredits, isLimited: true, remaining: "10000", interval: "monthly" as const, amount: "10000" },
    }),
  },
] as const;

/** Creates a key, then shows its secret once. */
export function CreateKey({
  apiId,
  prefix,
  onClose,
}: {
  apiId: string;
  prefix?: string | undefined;
  onClose: () => void;
}) {
  const can = useCan();
  const create = useCall("keys.createKey");
  const [draft, setDraft] = useState<Draft>({ ...empty, prefix: prefix ?? "" });
  const [preset, setPreset] = useState<string>();
  const [isJsonShown, setJsonShown] = useState(false);
  const [created, setCreated] = useState<{ keyId: string; secret: Secret }>();
  const roles = useQuery({ ...read("permissions.listRoles", { limit: 100 }), enabled: can("permissions.*.read_role") });
  const permissions = useQuery({
    ...read("permissions.listPermissions", { limit: 100 }),
    enabled: can("permissions.*.read_permission"),
  });
  const set = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }));
  const { input, problems } = useMemo(() => inputOf(apiId, draft), [apiId, draft]);
  const firstProblem = Object.values(problems).find((problem) => problem !== undefined);

  if (created) return <CreatedKey apiId={apiId} {...created} title="Key created" onClose={onClose} />;
  const submit = () =>
    create.mutate(input, {
      onSuccess: ({ data }) => setCreated({ keyId: data.keyId, secret: data.key }),
    });
  const limitCount = draft.ratelimits.length;
  return (
    <Dialog
      title="Create key"
      isOpen
      onClose={onClose}
      size="lg"
      footer={
        <>
          <Button kind="quiet" className="mr-auto" onPress={() => setJsonShown(!isJsonShown)}>
            {isJsonShown ? "Hide the call" : "Show the call"}
          </Button>
          <CopyButton text={() => snippetsOf("keys.createKey", input).curl}>Copy as curl</CopyButton>
          <Button onPress={onClose}>Cancel</Button>
          <Button
            kind="primary"
            needs={`apis.${apiId}.create_key`}
            onPress={submit}
            isPending={create.isPending}
            offBecause={firstProblem}
          >
            Create key
          </Button>
        </>
      }
    >
      <fieldset>
        <legend className="label mb-1.5">Begin with</legend>
        <div className="grid grid-cols-2 gap-2 sm:grid-cols-4">
          {presets.map(({ id, label, about, icon: Icon, draft: make }) => (
            <button
              key={id}
              type="button"
              aria-pressed={preset === id}
              onClick={() => {
                setPreset(id);
                set({ ...empty, name: draft.name, externalId: draft.externalId, meta: draft.meta, ...make() });
              }}
              className={classes(
                "flex flex-col items-start rounded-md border px-3 py-2 text-left",
                preset === id ? "border-accent bg-accent-soft" : "border-line hover:bg-hover",
              )}
            >
              <span className="flex items-center gap-1.5 font-medium">
                <Icon aria-hidden className="size-4 text-accent" />
                {label}
              </span>
              <span className="text-xs text-quiet">{about}</span>
            </button>
          ))}
        </div>
      </fieldset>
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Name"
          description={member(schema, "name").description}
          value={draft.name}
          onChange={(name) => set({ name })}
          problem={problems.name}
          placeholder="Acme, production"
          autoFocus
        />
        <TextField
          label="Owner"
          description="Your own id of the user or company. A new one creates an identity."
          value={draft.externalId}
          onChange={(externalId) => set({ externalId })}
          problem={problems.externalId}
          placeholder="acme"
        />
        <TextField
          label="Prefix"
          description={member(schema, "prefix").description}
          value={draft.prefix}
          onChange={(prefix) => set({ prefix })}
          problem={problems.prefix}
          placeholder="live"
          isMono
        />
        <ExpiryField value={draft.expires} onChange={(expires) => set({ expires })} />
      </div>
      <div className="border-b border-line">
        <Fold
          title="Access"
          summary={
            [
              draft.roles.length > 0 && counted(draft.roles.length, "role"),
              draft.permissions.length > 0 && counted(draft.permissions.length, "permission"),
            ]
              .filter(Boolean)
              .join(", ") || "No permissions"
          }
        >
          <TagsField
            label="Roles"
            description={member(schema, "roles").description}
            value={draft.roles}
            onChange={(roles) => set({ roles })}
            suggestions={roles.data?.map(({ name }) => name) ?? []}
          />
          <TagsField
            label="Permissions"
            description={member(schema, "permissions").description}
            value={draft.permissions}
            onChange={(permissions) => set({ permissions })}
            problem={problems.permissions}
            suggestions={permissions.data?.map(({ slug }) => slug) ?? []}
            placeholder="documents.read"
          />
        </Fold>
        <Fold
          key={`limits ${preset}`}
          title="Limits and credits"
          isOpen={limitCount > 0 || draft.credits.isLimited}
          summary={
            [
              limitCount > 0 && counted(limitCount, "limit"),
              draft.credits.isLimited && counted(Number(draft.credits.remaining), "credit"),
            ]
              .filter(Boolean)
              .join(", ") || "None"
          }
        >
          <RatelimitsField
            value={draft.ratelimits}
            onChange={(ratelimits) => set({ ratelimits })}
            problem={problems.ratelimits}
          />
          <CreditsField value={draft.credits} onChange={(credits) => set({ credits })} problem={problems.credits} />
        </Fold>
        <Fold title="More" summary={draft.recoverable ? "Recoverable" : undefined}>
          <JsonField
            label="Metadata"
            description={member(schema, "meta").description}
            value={draft.meta}
            onChange={(meta) => set({ meta })}
          />
          <TextField
            label="Random bytes"
            description={`${member(schema, "byteLength").description} Empty: the default of the API.`}
            type="number"
            value={draft.byteLength}
            onChange={(byteLength) => set({ byteLength })}
            problem={problems.byteLength}
          />
          <Switch label="Enabled" value={draft.enabled} onChange={(enabled) => set({ enabled })} />
          <Switch
            label="Recoverable"
            description={
              can(`apis.${apiId}.encrypt_key`)
                ? "The key string is stored encrypted and can be shown again."
                : `The root key lacks the permission apis.${apiId}.encrypt_key`
            }
            isDisabled={!can(`apis.${apiId}.encrypt_key`)}
            value={draft.recoverable}
            onChange={(recoverable) => set({ recoverable })}
          />
        </Fold>
      </div>
      {draft.expires !== undefined && (
        <p className="text-xs text-quiet">The key stops working on {localDay(draft.expires)}.</p>
      )}
      {isJsonShown && <Code text={JSON.stringify(input, null, 2)} label="Copy the JSON" />}
      {create.error && <ErrorBox error={create.error} />}
    </Dialog>
  );
}

type Problems = Partial<Record<keyof Draft, string | undefined>>;

/** The input of the call: only what differs from the defaults of the operation. */
function inputOf(apiId: string, draft: Draft): { input: Input<"keys.createKey">; problems: Problems } {
  const problems: Problems = {};
  const given = (name: "name" | "prefix" | "externalId") => {
    const value = draft[name].trim();
    if (value === "") return {};
    problems[name] = textProblem(member(schema, name), value);
    return { [name]: value };
  };
  const byteLength = draft.byteLength === "" ? undefined : Number(draft.byteLength);
  if (byteLength !== undefined) problems.byteLength = numberProblem(member(schema, "byteLength"), byteLength);
  const limits = ratelimitInputs(draft.ratelimits, member(schema, "ratelimits").items!);
  problems.ratelimits = limits.problem;
  const credits = creditsInput(draft.credits, member(schema, "credits"));
  problems.credits = credits.problem;
  const meta = parseObject(draft.meta);
  problems.meta = meta.problem;
  const slug = member(schema, "permissions").items!;
  problems.permissions = draft.permissions
    .map((name) =>
      accepts(slug, "string") && textProblem(slug, name) ? `${name} is no slug of a permission.` : undefined,
    )
    .find(Boolean);
  const input: Input<"keys.createKey"> = {
    apiId,
    ...given("prefix"),
    ...given("name"),
    ...(byteLength !== undefined && { byteLength }),
    ...given("externalId"),
    ...(meta.value && { meta: meta.value }),
    ...(draft.roles.length > 0 && { roles: draft.roles }),
    ...(draft.permissions.length > 0 && { permissions: draft.permissions }),
    ...(draft.expires !== undefined && { expires: draft.expires }),
    ...(credits.value && { credits: credits.value }),
    ...(limits.value.length > 0 && { ratelimits: limits.value }),
    ...(!draft.enabled && { enabled: false }),
    ...(draft.recoverable && { recoverable: true }),
  };
  return { input, problems };
}
