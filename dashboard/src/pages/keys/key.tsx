import { useQuery } from "@tanstack/react-query";
import { Link, lazyRouteComponent, useNavigate, useParams } from "@tanstack/react-router";
import { Suspense } from "react";
import { read } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { Page, Section, SectionLinks } from "../../ui/page.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { WhenSeen } from "../../ui/when-seen.tsx";
import { ActivitySection } from "../audit/activity-section.tsx";
import { LastRefusals } from "../decisions/last-refusals.tsx";
import { HoldsSection } from "../holds/holds-section.tsx";
import { KeyAccess } from "./access.tsx";
import { KeyActions } from "./key-actions.tsx";
import { KeyState, keyName, OwnerLink } from "./key-state.tsx";
import { KeyLimits } from "./limits.tsx";
import { KeyOverview } from "./overview.tsx";
import { KeyUsage } from "./usage.tsx";

const KeyCode = lazyRouteComponent(() => loadCode(() => import("./code.tsx")), "KeyCode");
const DeletedKey = lazyRouteComponent(() => loadCode(() => import("./deleted-key.tsx")), "DeletedKey");
const VerifyBox = lazyRouteComponent(() => loadCode(() => import("./verify-box.tsx")), "VerifyBox");

const sections = [
  ["overview", "Overview"],
  ["access", "Access"],
  ["limits", "Limits and credits"],
  ["holds", "Holds"],
  ["refusals", "Refusals"],
  ["activity", "Activity"],
  ["code", "Code"],
] as const;

/** Everything about a key, in one scroll. */
export function KeyPage() {
  const { apiId, keyId } = useParams({ from: "/shell/apis/$apiId/keys/$keyId" });
  const navigate = useNavigate();
  const found = useQuery(read("keys.getKey", { keyId, deleted: true }));
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
  if (key.deletedAt !== undefined) {
    return (
      <Suspense>
        <DeletedKey of={key} deletedAt={key.deletedAt} above={above} />
      </Suspense>
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
          {key.identity && <OwnerLink {...key.identity} />}
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
            <WhenSeen height="min-h-48">
              <VerifyBox apiId={apiId} keyId={keyId} />
            </WhenSeen>
          </div>
        </Section>
        <Section title="Limits and credits" id="limits">
          <KeyLimits of={key} />
        </Section>
        <HoldsSection of={{ keyId }} id="holds" />
        <LastRefusals about={keyId} id="refusals" />
        <ActivitySection target={keyId} id="activity" />
        <Section title="Code" id="code">
          <WhenSeen>
            <KeyCode of={key} />
          </WhenSeen>
        </Section>
      </div>
    </Page>
  );
}
