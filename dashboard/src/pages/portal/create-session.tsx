import schema from "virtual:operation/portal.createSession";
import type { Secret } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Input, read } from "../../api/client.ts";
import { DAY, duration, localTime } from "../../api/format.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Switch, TagsField, TextField } from "../../ui/fields.tsx";
import { Fold } from "../../ui/fold.tsx";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { Select } from "../../ui/select.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";

type SessionInput = Input<"portal.createSession">;
type Action = SessionInput["actions"][number];
type Language = NonNullable<NonNullable<SessionInput["page"]>["language"]>;

/** What a session may do: in words, and the permission that the root key needs for it. */
const portalActions: Record<Action, { readonly label: string; readonly needs: string }> = {
  list: { label: "See the keys", needs: "read_key" },
  usage: { label: "See their usage", needs: "read_analytics" },
  create: { label: "Create keys", needs: "create_key" },
  reroll: { label: "Replace keys", needs: "create_key" },
  rename: { label: "Rename keys", needs: "update_key" },
  delete: { label: "Delete keys", needs: "delete_key" },
};
const all = Object.keys(portalActions) as Action[];

const languages: Record<"browser" | Language, string> = {
  browser: "Language of the browser",
  en: "English",
  de: "Deutsch",
  fr: "Français",
  es: "Español",
  ja: "日本語",
};

const MINUTE = 60_000;
const lives = [5, 15, 30, 60].map((minutes) => minutes * MINUTE);

interface Limits {
  readonly max: string;
  readonly prefixes: readonly string[];
  readonly days: string;
  readonly roles: readonly string[];
}
interface Brand {
  readonly name: string;
  readonly logoUrl: string;
  readonly color: string;
  readonly returnUrl: string;
  readonly language: keyof typeof languages;
}

/** Creates a session in which an owner manages their keys, and shows the address of its page once. */
export function CreateSession({
  apiId: givenApi,
  externalId: givenOwner,
  onClose,
}: {
  /** Undefined: it is chosen. */
  apiId?: string;
  /** Undefined: it is entered. */
  externalId?: string;
  onClose: () => void;
}) {
  const can = useCan();
  const { data: apis, error } = useQuery({
    ...read("apis.listApis", { limit: 100 }),
    enabled: givenApi === undefined,
  });
  const [chosenApi, setChosenApi] = useState<string>();
  const [owner, setOwner] = useState(givenOwner ?? "");
  const [off, setOff] = useState<ReadonlySet<Action>>(new Set());
  const [limits, setLimits] = useState<Limits>({ max: "", prefixes: [], days: "", roles: [] });
  const [brand, setBrand] = useState<Brand>({ name: "", logoUrl: "", color: "", returnUrl: "", language: "browser" });
  const [life, setLife] = useState(String(15 * MINUTE));
  const [created, setCreated] = useState<{ url: Secret; expiresAt: number }>();
  const roles = useQuery({ ...read("permissions.listRoles", { limit: 100 }), enabled: can("permissions.*.read_role") });
  const apiId = givenApi ?? chosenApi ?? apis?.[0]?.apiId ?? "";
  if (created) return <Created owner={owner} {...created} onClose={onClose} />;

  const lacks = (action: Action) => {
    const permission = `apis.${apiId || "*"}.${portalActions[action].needs}`;
    return can(permission) ? undefined : `The root key lacks the permission ${permission}`;
  };
  const actions = all.filter((action) => !off.has(action) && lacks(action) === undefined);
  const keys = keysOf(limits);
  const page = pageOf(brand);
  const ownerProblem = owner === "" ? undefined : textProblem(member(schema, "externalId"), owner);
  const input: SessionInput = {
    apiId,
    externalId: owner,
    actions,
    ...(Object.keys(keys.value).length > 0 && { keys: keys.value }),
    ...(Object.keys(page.value).length > 0 && { page: page.value }),
    expiresIn: Number(life),
  };
  const changeLimits = (change: Partial<Limits>) => setLimits({ ...limits, ...change });
  const changeBrand = (change: Partial<Brand>) => setBrand({ ...brand, ...change });
  return (
    <FormDialog
      title={givenOwner === undefined ? "Session of the portal" : `Portal of ${givenOwner}`}
      operation="portal.createSession"
      input={input}
      problem={
        (apiId === "" ? "There is no API" : owner === "" ? "Enter the owner" : ownerProblem) ??
        (actions.length === 0 ? "Choose what the session may do" : undefined) ??
        keys.problem ??
        page.problem
      }
      action="Create session"
      needs={`apis.${apiId || "*"}.create_portal_session`}
      onClose={onClose}
      onDone={({ data: { url, expiresAt } }) => setCreated({ url, expiresAt })}
    >
      <p>The owner of keys manages them on a page of this service, in your name. The session ends by itself.</p>
      {error && <ErrorBox error={error} />}
      <div className="grid gap-4 sm:grid-cols-2">
        {givenOwner === undefined && (
          <TextField
            label="Owner"
            description="Your own id of the user or company. A new one creates an identity."
            value={owner}
            onChange={setOwner}
            problem={ownerProblem}
            placeholder="acme"
            autoFocus
          />
        )}
        {givenApi === undefined &&
          (apis === undefined ? (
            <Skeleton lines={1} />
          ) : (
            <Select
              label="API"
              value={apiId}
              onChange={setChosenApi}
              options={apis.map((api) => ({ value: api.apiId, label: api.name }))}
            />
          ))}
        <Select
          label="The session ends after"
          value={life}
          onChange={setLife}
          options={lives.map((value) => ({ value: String(value), label: duration(value) }))}
        />
      </div>
      <fieldset>
        <legend className="label mb-2">The session may</legend>
        <div className="grid gap-2 sm:grid-cols-2">
          {all.map((action) => (
            <Switch
              key={action}
              label={portalActions[action].label}
              description={lacks(action)}
              isDisabled={lacks(action) !== undefined}
              value={actions.includes(action)}
              onChange={(isOn) => {
                const next = new Set(off);
                if (isOn) next.delete(action);
                else next.add(action);
                setOff(next);
              }}
            />
          ))}
        </div>
      </fieldset>
      <div className="border-b border-line">
        <Fold title="Limits on the keys" summary={limits.max === "" ? "At most 10 keys" : `At most ${limits.max} keys`}>
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField
              label="Keys at most"
              description="In this API, without expired ones. Empty: 10."
              type="number"
              value={limits.max}
              onChange={(max) => changeLimits({ max })}
            />
            <TextField
              label="Longest life of a new key, in days"
              description="Empty: a new key needs no expiry."
              type="number"
              value={limits.days}
              onChange={(days) => changeLimits({ days })}
            />
          </div>
          <TagsField
            label="Prefixes to choose from"
            description="The default first. Empty: that of the API."
            value={limits.prefixes}
            onChange={(prefixes) => changeLimits({ prefixes })}
            placeholder="live"
          />
          <TagsField
            label="Roles that a new key may have"
            description="It has all of them by default: this is how new keys get permissions."
            value={limits.roles}
            onChange={(roles) => changeLimits({ roles })}
            suggestions={roles.data?.map(({ name }) => name) ?? []}
          />
          {keys.problem && <p className="text-xs text-bad">{keys.problem}</p>}
        </Fold>
        <Fold title="Brand and language" summary={brand.name || languages[brand.language]}>
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField
              label="Your name"
              value={brand.name}
              onChange={(name) => changeBrand({ name })}
              placeholder="Acme Documents"
            />
            <Select
              label="Language"
              value={brand.language}
              onChange={(language) => changeBrand({ language })}
              options={(Object.keys(languages) as (keyof typeof languages)[]).map((value) => ({
                value,
                label: languages[value],
              }))}
            />
            <TextField
              label="Logo"
              description="An https address that every browser can load."
              value={brand.logoUrl}
              onChange={(logoUrl) => changeBrand({ logoUrl })}
              placeholder="https://acme.example/logo.svg"
            />
            <TextField
              label="Color of buttons and links"
              description="It is made lighter or darker where it could not be read."
              value={brand.color}
              onChange={(color) => changeBrand({ color })}
              placeholder="#246bce"
              isMono
            />
            <TextField
              label="Where the link back leads"
              description="Empty: there is none."
              value={brand.returnUrl}
              onChange={(returnUrl) => changeBrand({ returnUrl })}
              placeholder="https://acme.example/account"
            />
          </div>
          {page.problem && <p className="text-xs text-bad">{page.problem}</p>}
        </Fold>
      </div>
    </FormDialog>
  );
}

/** Shows the address of the page, this one time. */
function Created({
  owner,
  url,
  expiresAt,
  onClose,
}: {
  owner: string;
  url: Secret;
  expiresAt: number;
  onClose: () => void;
}) {
  const address = new URL(url.reveal(), location.origin).href;
  return (
    <Dialog
      title={`Portal of ${owner}`}
      isOpen
      onClose={onClose}
      isDismissable={false}
      footer={<Button onPress={onClose}>Close</Button>}
    >
      <p>
        This is the only time that the address is shown. It gives access to the keys of {owner} until{" "}
        {localTime(expiresAt)}: give it to this owner only.
      </p>
      <div className="rounded-md border border-accent/50 bg-accent-soft p-3">
        <code className="font-mono text-xs break-all" data-secret>
          {address}
        </code>
      </div>
      <div className="flex flex-wrap items-center gap-3">
        <CopyButton text={address} kind="primary">
          Copy the address
        </CopyButton>
        <a href={address} target="_blank" rel="noreferrer" className="link">
          Open the portal
        </a>
      </div>
    </Dialog>
  );
}

/** The limits of the input, or why they cannot be used. */
function keysOf({ max, prefixes, days, roles }: Limits) {
  const declared = member(schema, "keys");
  const value: NonNullable<SessionInput["keys"]> = {
    ...(max !== "" && { max: Number(max) }),
    ...(prefixes.length > 0 && { prefixes }),
    ...(days !== "" && { expiresInMax: Number(days) * DAY }),
    ...(roles.length > 0 && { roles }),
  };
  const wrongPrefix = prefixes.find((prefix) => textProblem(member(declared, "prefixes").items!, prefix));
  const problem =
    (value.max !== undefined && numberProblem(member(declared, "max"), value.max)) ||
    (value.expiresInMax !== undefined &&
      numberProblem(member(declared, "expiresInMax"), value.expiresInMax) &&
      "The longest life of a key must be a number of days.") ||
    (wrongPrefix && `${wrongPrefix} is no prefix.`) ||
    undefined;
  return { value, problem };
}

/** The look of the input, or why it cannot be used. */
function pageOf({ name, logoUrl, color, returnUrl, language }: Brand) {
  const declared = member(schema, "page");
  const texts = Object.fromEntries(
    Object.entries({ name, logoUrl, color, returnUrl }).filter(([, text]) => text !== ""),
  );
  const value: NonNullable<SessionInput["page"]> = { ...texts, ...(language !== "browser" && { language }) };
  const wrong = Object.entries(texts).find(([name, text]) => textProblem(member(declared, name), text) !== undefined);
  return { value, problem: wrong && looks[wrong[0] as keyof typeof looks] };
}

/** What the texts of the look must be. */
const looks = {
  name: "Your name has at most 100 characters.",
  logoUrl: "The logo is an address that begins with https://.",
  color: "The color has the form #246bce.",
  returnUrl: "The link back is an address that begins with https:// or http://.",
} as const;
