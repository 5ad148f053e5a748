import schema from "virtual:operation/apis.updateApi";
import type { Api } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { read } from "../../api/client.ts";
import { counted } from "../../api/format.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Switch, TagsField, TextField } from "../../ui/fields/fields.tsx";
import { type Change, InlineEdit } from "../../ui/fields/inline-edit.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { Fact, Facts, None, Page, Section, SectionLinks } from "../../ui/page.tsx";
import { Addresses } from "../../ui/text/addresses.tsx";
import { CopyButton, Id } from "../../ui/text/copy-button.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { PortalSessions } from "../portal/portal-sessions.tsx";
import { LeakKit } from "./leak-kit.tsx";
import { Policy } from "./policy.tsx";
import { ApiPortal } from "./portal.tsx";
import { useSetting } from "./setting.ts";
import { Upstream } from "./upstream.tsx";

const sections = [
  ["keys", "Keys"],
  ["owners", "Owners of keys"],
  ["portal", "Portal"],
  ["events", "Events"],
  ["leaks", "Leaked keys"],
  ["upstream", "Upstream verifier"],
] as const;

/** What an API says about its keys, edited in place; what finds its leaked keys; the sessions of the portal. */
export function ApiSettingsPage() {
  const { apiId } = useParams({ from: "/shell/apis/$apiId/settings" });
  const found = useQuery(read("apis.getApi", { apiId }));
  const api = found.data;
  const above = (
    <>
      <Link to="/apis" className="hover:underline">
        APIs
      </Link>
      {" / "}
      <Link to="/apis/$apiId" params={{ apiId }} className="hover:underline">
        {api?.name ?? apiId}
      </Link>
    </>
  );
  return (
    <Page
      title="Settings of the API"
      tabTitle={api ? `Settings of ${api.name}` : "Settings of the API"}
      above={above}
      summary={<Id id={apiId} />}
      actions={<CopyButton text={() => snippetsOf("apis.getApi", { apiId }).curl}>Copy as curl</CopyButton>}
    >
      {!api ? (
        <Loading of={found} lines={8} />
      ) : (
        <>
          <SectionLinks label="Sections of the settings" sections={sections} />
          <div className="[&>section:first-child]:border-t-0">
            <Section title="Keys" id="keys">
              <KeySettings of={api} />
              <ApiPolicy of={api} />
            </Section>
            <Section title="Owners of keys" id="owners">
              <OwnKeyAccess of={api} />
            </Section>
            <Section title="Portal" id="portal">
              <ApiPortal of={api} />
              <PortalSessions apiId={apiId} />
            </Section>
            <Section title="Events" id="events">
              <ExpiryNotices of={api} />
            </Section>
            <Section title="Leaked keys" id="leaks">
              <LeakAction of={api} />
              <LeakKit of={api} />
            </Section>
            <Section title="Upstream verifier" id="upstream">
              <Upstream of={api} />
            </Section>
          </div>
        </>
      )}
    </Page>
  );
}

/** Whether something is on, as words that are edited with a switch. */
function OnOff({
  label,
  value,
  on,
  off,
  setting,
}: {
  label: string;
  value: boolean;
  on: string;
  off: string;
  setting: ReturnType<ReturnType<typeof useSetting>>;
}) {
  return (
    <InlineEdit
      {...setting}
      label={label}
      display={value ? on : <None text={off} />}
      draft={() => value}
      change={(draft) => (draft === value ? {} : { value: draft })}
      editor={(draft, set) => <Switch label={draft ? on : off} value={draft} onChange={set} />}
    />
  );
}

function KeySettings({ of: api }: { of: Api }) {
  const setting = useSetting(api);
  const { name, prefix, byteLength, allowedIps = [], deleteProtection = false } = api;
  return (
    <Facts>
      <Fact name="Name">
        <InlineEdit
          {...setting("name")}
          label="the name"
          display={name}
          draft={() => name}
          change={(draft): Change =>
            draft === name ? {} : { value: draft, problem: textProblem(member(schema, "name"), draft) }
          }
          editor={(draft, set) => <TextField label="Name" value={draft} onChange={set} autoFocus />}
        />
      </Fact>
      <Fact name="Prefix of new keys">
        <InlineEdit
          {...setting("prefix")}
          label="the default prefix"
          display={prefix === undefined ? <None /> : <code className="font-mono text-xs">{prefix}_</code>}
          draft={() => prefix ?? ""}
          change={(draft): Change => {
            if (draft === (prefix ?? "")) return {};
            return draft === ""
              ? { value: null }
              : { value: draft, problem: textProblem(member(schema, "prefix"), draft) };
          }}
          editor={(draft, set) => (
            <TextField
              label="Default prefix of new keys"
              description="Scanners find leaked keys by it. Empty: none."
              value={draft}
              onChange={set}
              isMono
              autoFocus
            />
          )}
        />
      </Fact>
      <Fact name="Random bytes">
        <InlineEdit
          {...setting("byteLength")}
          label="the random bytes"
          display={byteLength ?? <None text="16, the default" />}
          draft={() => String(byteLength ?? "")}
          change={(draft): Change => {
            if (draft === String(byteLength ?? "")) return {};
            if (draft === "") return { value: null };
            return { value: Number(draft), problem: numberProblem(member(schema, "byteLength"), Number(draft)) };
          }}
          editor={(draft, set) => (
            <TextField
              label="Random bytes of new keys"
              description="Empty: 16."
              type="number"
              value={draft}
              onChange={set}
              autoFocus
            />
          )}
        />
      </Fact>
      <Fact name="Allowed addresses">
        <InlineEdit
          {...setting("allowedIps")}
          label="the allowed addresses"
          display={<Addresses of={allowedIps} none="every address" />}
          draft={() => allowedIps as readonly string[]}
          change={(draft) => {
            if (draft.join() === allowedIps.join()) return {};
            return { value: draft.length === 0 ? null : draft };
          }}
          editor={(draft, set) => (
            <TagsField
              label="Allowed addresses"
              description="IPv4 and IPv6 addresses and CIDRs that may use the keys. Empty: every address."
              value={draft}
              onChange={set}
              placeholder="10.0.0.0/8"
            />
          )}
        />
      </Fact>
      <Fact name="Deletion">
        <OnOff
          label="the protection from deletion"
          setting={setting("deleteProtection")}
          value={deleteProtection}
          on="The API is protected from deletion"
          off="The API can be deleted"
        />
      </Fact>
    </Facts>
  );
}

function ApiPolicy({ of: api }: { of: Api }) {
  return <Policy of={api} setting={useSetting(api)} />;
}

function OwnKeyAccess({ of: api }: { of: Api }) {
  const setting = useSetting(api);
  return (
    <Facts>
      <Fact name="Access to the own key">
        <OnOff
          label="the access to the own key"
          setting={setting("ownKeyAccess")}
          value={api.ownKeyAccess ?? false}
          on="Holders read their key with keys.getOwnKey"
          off="keys.getOwnKey does not find these keys"
        />
        <p className="mt-1 text-xs text-quiet">
          With the key string alone, keys.getOwnKey answers what is left, limits, expiry and usage.
        </p>
      </Fact>
    </Facts>
  );
}

const noticeDays = (member(schema, "expiryNotices").items?.enum ?? []) as readonly unknown[] as readonly number[];
const DEFAULT_NOTICES = [7, 1];

function ExpiryNotices({ of: api }: { of: Api }) {
  const setting = useSetting(api);
  const days = latestFirst(api.expiryNotices ?? DEFAULT_NOTICES);
  return (
    <Facts>
      <Fact name="A key expires soon">
        <InlineEdit
          {...setting("expiryNotices")}
          label="the days before the expiry"
          display={
            days.length === 0 ? (
              <None text="no event before a key expires" />
            ) : (
              `key.expiring ${days.map((count) => counted(count, "day")).join(", ")} before the expiry`
            )
          }
          draft={() => days}
          change={(draft) => {
            if (draft.join() === days.join()) return {};
            return { value: draft.join() === DEFAULT_NOTICES.join() ? null : draft };
          }}
          editor={(draft, set) => (
            <fieldset className="space-y-2">
              <legend className="label mb-1">Days before the expiry with an event key.expiring</legend>
              <div className="grid grid-cols-2 gap-2 sm:grid-cols-4">
                {noticeDays.map((count) => (
                  <Switch
                    key={count}
                    label={counted(count, "day")}
                    value={draft.includes(count)}
                    onChange={(isOn) =>
                      set(latestFirst(isOn ? [...draft, count] : draft.filter((other) => other !== count)))
                    }
                  />
                ))}
              </div>
            </fieldset>
          )}
        />
      </Fact>
    </Facts>
  );
}

function latestFirst(days: readonly number[]): readonly number[] {
  return [...days].sort((a, b) => b - a);
}

type Action = NonNullable<Api["leakAction"]>;
const leakActions: Record<Action, string> = {
  mark: "Mark the key as leaked: it still verifies",
  disable: "Disable the key at once",
};

function LeakAction({ of: api }: { of: Api }) {
  const setting = useSetting(api);
  const action = api.leakAction ?? "mark";
  return (
    <Facts>
      <Fact name="A key is reported">
        <InlineEdit<Action>
          {...setting("leakAction")}
          label="what happens to a reported key"
          display={leakActions[action]}
          draft={() => action}
          change={(draft) => (draft === action ? {} : { value: draft })}
          editor={(draft, set) => (
            <Select
              label="If a key is reported as leaked"
              value={draft}
              onChange={set}
              options={(Object.keys(leakActions) as Action[]).map((value) => ({ value, label: leakActions[value] }))}
            />
          )}
        />
      </Fact>
    </Facts>
  );
}
