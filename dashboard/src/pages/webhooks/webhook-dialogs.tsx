import createSchema from "virtual:operation/webhooks.createWebhook";
import type { Secret, Webhook } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Input, read } from "../../api/client.ts";
import { localTime } from "../../api/format.ts";
import { member, textProblem } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { type CheckGroup, Checks } from "../../ui/fields/checks.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { OVERLAP, OverlapField } from "../../ui/fields/overlap-field.tsx";
import { Segments } from "../../ui/fields/segments.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { NewSecretDialog } from "../../ui/overlays/new-secret-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { groupsOf } from "../events/event-types.ts";
import { webhookName } from "./webhook-state.tsx";

const eventTypes = member(createSchema, "eventTypes").items?.enum ?? [];

/** A secret that was just made. */
export interface MadeSecret {
  readonly title: string;
  readonly secret: Secret;
}

/** The settings of a webhook while they are edited. Undefined lists: everything. */
interface Settings {
  readonly endpoint: string;
  readonly name: string;
  readonly eventTypes: readonly string[] | undefined;
  readonly apiIds: readonly string[] | undefined;
}

/** Creates a webhook. */
export function CreateWebhook({
  onClose,
  onMade,
}: {
  onClose: () => void;
  onMade: (webhookId: string, made: MadeSecret) => void;
}) {
  const [settings, setSettings] = useState<Settings>({
    endpoint: "",
    name: "",
    eventTypes: undefined,
    apiIds: undefined,
  });
  const { endpoint, name, eventTypes, apiIds } = settings;
  const input = {
    endpoint,
    ...(name !== "" && { name }),
    ...(eventTypes && { eventTypes }),
    ...(apiIds && { apiIds }),
  } as Input<"webhooks.createWebhook">;
  return (
    <FormDialog
      title="Create webhook"
      operation="webhooks.createWebhook"
      input={input}
      problem={problemOf(settings)}
      action="Create webhook"
      needs={["webhooks.*.create_webhook", "events.*.read_event"]}
      size="lg"
      onClose={onClose}
      onDone={({ data: { webhookId, secret } }) => {
        onClose();
        onMade(webhookId, {
          title: `The secret of ${webhookName({ endpoint, ...(name !== "" && { name }) })}`,
          secret,
        });
      }}
    >
      <SettingsFields value={settings} onChange={setSettings} />
    </FormDialog>
  );
}

/** Changes the address, the name and the filters of a webhook. */
export function EditWebhook({ of: webhook, onClose }: { of: Webhook; onClose: () => void }) {
  const { webhookId } = webhook;
  const before: Settings = {
    endpoint: webhook.endpoint,
    name: webhook.name ?? "",
    eventTypes: webhook.eventTypes,
    apiIds: webhook.apiIds,
  };
  const [settings, setSettings] = useState(before);
  const { endpoint, name, eventTypes, apiIds } = settings;
  const changes = {
    ...(endpoint !== before.endpoint && { endpoint }),
    ...(name !== before.name && { name: name || null }),
    ...(!isSame(eventTypes, before.eventTypes) && { eventTypes: eventTypes ?? null }),
    ...(!isSame(apiIds, before.apiIds) && { apiIds: apiIds ?? null }),
  };
  return (
    <FormDialog
      title={`Edit ${webhookName(webhook)}`}
      operation="webhooks.updateWebhook"
      input={{ webhookId, ...changes } as Input<"webhooks.updateWebhook">}
      problem={problemOf(settings) ?? (Object.keys(changes).length === 0 && "Nothing has changed")}
      action="Save webhook"
      needs={[`webhooks.${webhookId}.update_webhook`, "events.*.read_event"]}
      size="lg"
      onClose={onClose}
      onDone={() => {
        onClose();
        toast({ text: "Saved the webhook." });
      }}
    >
      <SettingsFields value={settings} onChange={setSettings} />
    </FormDialog>
  );
}

function SettingsFields({ value, onChange }: { value: Settings; onChange: (value: Settings) => void }) {
  const { endpoint, name, eventTypes: types, apiIds } = value;
  const mayReadApis = useCan()("apis.*.read_api");
  const { data: apis = [] } = useQuery({ ...read("apis.listApis", { limit: 100 }), enabled: mayReadApis });
  // An API that the list lacks, because it was deleted, can be removed from the choice.
  const others = (apiIds ?? []).filter((id) => !apis.some(({ apiId }) => apiId === id));
  const apiOptions = [
    ...apis.map(({ apiId, name }) => ({ value: apiId, label: name })),
    ...others.map((id) => ({ value: id, label: id })),
  ];
  return (
    <>
      <TextField
        label="Endpoint"
        description={member(createSchema, "endpoint").description}
        value={endpoint}
        onChange={(endpoint) => onChange({ ...value, endpoint: endpoint.trim() })}
        problem={endpoint === "" ? undefined : endpointProblem(endpoint)}
        placeholder="https://billing.example.com/latchkey"
        isMono
        autoFocus
      />
      <TextField
        label="Name"
        description={member(createSchema, "name").description}
        value={name}
        onChange={(name) => onChange({ ...value, name })}
        problem={name === "" ? undefined : textProblem(member(createSchema, "name"), name)}
        placeholder="billing"
      />
      <Choice
        label="Events"
        all="All types"
        some="Only these types"
        groups={groupsOf(eventTypes)}
        value={types}
        onChange={(eventTypes) => onChange({ ...value, eventTypes })}
      />
      {(apiOptions.length > 0 || apiIds !== undefined) && (
        <Choice
          label="APIs"
          all="Of everything"
          some="Only of these APIs"
          description="Events without an API, such as those of root keys, are then left out."
          groups={[{ options: apiOptions }]}
          value={apiIds}
          onChange={(apiIds) => onChange({ ...value, apiIds })}
        />
      )}
    </>
  );
}

/** Everything, or what is ticked. Undefined: everything. */
function Choice({
  label,
  all,
  some,
  description,
  groups,
  value,
  onChange,
}: {
  label: string;
  all: string;
  some: string;
  /** What the choice leaves out. */
  description?: string;
  groups: readonly CheckGroup[];
  value: readonly string[] | undefined;
  onChange: (value: readonly string[] | undefined) => void;
}) {
  return (
    <div className="space-y-1.5">
      <p className="label" aria-hidden>
        {label}
      </p>
      <Segments
        label={label}
        options={{ all, some }}
        value={value === undefined ? "all" : "some"}
        onChange={(chosen) => onChange(chosen === "all" ? undefined : (value ?? []))}
      />
      {value !== undefined && <Checks label={some} groups={groups} value={value} onChange={onChange} />}
      {value !== undefined && description && <p className="text-xs text-quiet">{description}</p>}
    </div>
  );
}

/** Makes a new secret. Messages are signed with the former one too for a while. */
export function RotateSecret({
  of: webhook,
  onClose,
  onMade,
}: {
  of: Webhook;
  onClose: () => void;
  onMade: (made: MadeSecret) => void;
}) {
  const { webhookId } = webhook;
  const [expiration, setExpiration] = useState(OVERLAP);
  const [now] = useState(Date.now);
  return (
    <FormDialog
      title={`Rotate the secret of ${webhookName(webhook)}`}
      operation="webhooks.rotateSecret"
      input={{ webhookId, expiration }}
      action="Rotate secret"
      needs={`webhooks.${webhookId}.update_webhook`}
      size="sm"
      onClose={onClose}
      onDone={({ data: { secret } }) => {
        onClose();
        onMade({ title: `The new secret of ${webhookName(webhook)}`, secret });
      }}
    >
      <p>
        {expiration === 0
          ? "Messages are signed with the new secret only, at once. Receivers that have the old one reject them."
          : `Messages have two signatures until ${localTime(now + expiration)}: receivers with either secret accept them.`}
        {webhook.previousSecretExpires !== undefined && " The secret from before the last rotation ends at once."}
      </p>
      <OverlapField label="The old secret signs for another" value={expiration} onChange={setExpiration} />
    </FormDialog>
  );
}

/** Shows the secret of a webhook, this one time. */
export function MadeWebhookSecret({ of: { title, secret }, onClose }: { of: MadeSecret; onClose: () => void }) {
  const text = secret.reveal();
  return (
    <NewSecretDialog
      title={title}
      secret={text}
      copy="Copy secret"
      about="This is the only time that the secret is shown. Put it into the secret store of the receiver, which verifies the signature of each message with it."
      onClose={onClose}
    >
      <div>
        <p className="label mb-1">A receiver verifies each message before it reads it</p>
        <Code
          text={[
            `import { Webhook } from "standardwebhooks";`,
            "const webhook = new Webhook(process.env.WEBHOOK_SECRET);",
            "webhook.verify(body, headers); // throws if the signature is wrong",
          ].join("\n")}
          label="Copy the program"
        />
      </div>
    </NewSecretDialog>
  );
}

function problemOf({ endpoint, name, eventTypes, apiIds }: Settings): string | undefined {
  if (endpoint === "") return "Enter an endpoint";
  if (eventTypes?.length === 0) return "Choose the types of events";
  if (apiIds?.length === 0) return "Choose the APIs";
  return endpointProblem(endpoint) ?? (name === "" ? undefined : textProblem(member(createSchema, "name"), name));
}

/** The service knows whether other addresses than those of `https://` are allowed. */
function endpointProblem(endpoint: string): string | undefined {
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint)) return "Enter a URL that begins with https://.";
  return textProblem(member(createSchema, "endpoint"), endpoint);
}

function isSame(one: readonly string[] | undefined, other: readonly string[] | undefined): boolean {
  return JSON.stringify(one?.toSorted()) === JSON.stringify(other?.toSorted());
}
