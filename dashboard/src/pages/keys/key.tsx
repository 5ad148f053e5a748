import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { read } from "../../api/client.ts";
import { Id } from "../../ui/copy-button.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Page, Section, SectionLinks } from "../../ui/page.tsx";
import { KeyAccess } from "./access.tsx";
import { Activity } from "./activity.tsx";
import { KeyCode } from "./code.tsx";
import { KeyActions } from "./key-actions.tsx";
import { KeyState, keyName } from "./key-state.tsx";
import { KeyLimits } from "./limits.tsx";
import { KeyOverview } from "./overview.tsx";
import { KeyUsage } from "./usage.tsx";
import { VerifyBox } from "./verify-box.tsx";

const sections = [
  ["overview", "Overview"],
  ["access", "Access"],
  ["limits", "Limits and credits"],
  ["activity", "Activity"],
  ["code", "Code"],
] as const;

/** Everything about a key, in one scroll. */
export function KeyPage() {
  const { apiId, keyId } = useParams({ from: "/shell/apis/$apiId/keys/$keyId" });
  const navigate = useNavigate();
  const found = useQuery(read("keys.getKey", { keyId }));
  const key = found.data;
  const api = useQuery(read("apis.getApi", { apiId }));
  const above = (
    <>
      <Link to="/apis" className="hover:underline">
        APIs
      </Link>
      {" / "}
      <Link to="/apis/$apiId" params={{ apiId }} className="hover:underline">
        {api.data?.name ?? apiId}
      </Link>
    </>
  );
  if (!key) {
    return (
      <Page title="Key" above={above}>
        <Loading of={found} lines={8} />
      </Page>
    );
  }
  return (
    <Page
      above={above}
      tabTitle={keyName(key)}
      title={
        <span className="flex flex-wrap items-center gap-2.5">
          {keyName(key)}
          <KeyState of={key} />
        </span>
      }
      summary={
        <span className="flex flex-wrap items-center gap-x-4 gap-y-1">
          {key.identity && (
            <Link
              to="/apis/$apiId"
              params={{ apiId }}
              search={{ owner: key.identity.externalId }}
              className="hover:underline"
            >
              {key.identity.externalId}
            </Link>
          )}
          {key.start !== "" && <code className="font-mono text-xs">{key.start}…</code>}
          <Id id={keyId} />
        </span>
      }
      actions={<KeyActions of={key} onDeleted={() => void navigate({ to: "/apis/$apiId", params: { apiId } })} />}
    >
      <SectionLinks label="Sections of the key" sections={sections} />
      <div className="[&>section:first-child]:border-t-0">
        <Section title="Overview" id="overview">
          <KeyUsage of={key} />
          <KeyOverview of={key} />
        </Section>
        <Section title="Access" id="access">
          <KeyAccess of={key} />
          <div className="mt-4">
            <VerifyBox apiId={apiId} keyId={keyId} />
          </div>
        </Section>
        <Section title="Limits and credits" id="limits">
          <KeyLimits of={key} />
        </Section>
        <Section title="Activity" id="activity">
          <Activity target={keyId} />
        </Section>
        <Section title="Code" id="code">
          <KeyCode of={key} />
        </Section>
      </div>
    </Page>
  );
}
