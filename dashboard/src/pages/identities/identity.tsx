import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { call, type Data, read, refresh } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { counted } from "../../api/format.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { share } from "../../api/stats.ts";
import { Button } from "../../ui/button.tsx";
import { VerificationChart } from "../../ui/charts/verification-chart.tsx";
import { type RangeName, RangePicker, useRange } from "../../ui/fields/range.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { MoreMenu } from "../../ui/overlays/menu.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { CopyButton, Id } from "../../ui/text/copy-button.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Count } from "../../ui/text/number.tsx";
import { ActivitySection } from "../audit/activity-section.tsx";
import { LastRefusals } from "../decisions/last-refusals.tsx";
import { HoldsSection } from "../holds/holds-section.tsx";
import { KeysByApi } from "../keys/keys-by-api.tsx";
import { IdentityMembers } from "./identity-members.tsx";

const CreateSession = lazy(async () => ({
  default: (await loadCode(() => import("../portal/create-session.tsx"))).CreateSession,
}));

type Identity = Data<"identities.getIdentity">;

/** An owner of keys: its keys, limits, metadata, use and changes. */
export function IdentityPage() {
  const { identityId } = useParams({ from: "/shell/identities/$identityId" });
  const navigate = useNavigate();
  const [isDeleting, setDeleting] = useState(false);
  const [isOpening, setOpening] = useState(false);
  const found = useQuery(read("identities.getIdentity", { identity: identityId }));
  const identity = found.data;
  const above = (
    <Link to="/identities" className="hover:underline">
      Identities
    </Link>
  );
  if (!identity) {
    return (
      <Page title="Identity" above={above}>
        <Loading of={found} lines={8} />
      </Page>
    );
  }
  const { id, externalId } = identity;
  return (
    <Page
      title={externalId}
      above={above}
      summary={<Id id={id} />}
      actions={
        <>
          <CopyButton text={() => snippetsOf("identities.getIdentity", { identity: externalId }).curl}>
            Copy as curl
          </CopyButton>
          <Button needs="apis.some.create_portal_session" onPress={() => setOpening(true)}>
            Portal session…
          </Button>
          <MoreMenu
            label="Actions"
            entries={[
              {
                label: "Delete the identity…",
                isDanger: true,
                needs: "identities.*.delete_identity",
                onAction: () => setDeleting(true),
              },
            ]}
          />
        </>
      }
    >
      <Section title="Use">
        <Usage of={identity} />
      </Section>
      <Section title="Keys">
        <KeysByApi
          of={{ externalId }}
          empty={
            <p className="text-quiet">
              It has no keys. Create a key with the externalId <code className="font-mono text-xs">{externalId}</code>{" "}
              in one of your{" "}
              <Link to="/apis" className="link">
                APIs
              </Link>
              .
            </p>
          }
        />
      </Section>
      <Section title="Plan, limits, budget and metadata">
        <IdentityMembers of={identity} />
      </Section>
      <HoldsSection of={{ identity: id }} />
      <LastRefusals about={id} />
      <ActivitySection target={id} />
      {isOpening && (
        <Suspense>
          <CreateSession externalId={externalId} onClose={() => setOpening(false)} />
        </Suspense>
      )}
      <ConfirmDialog
        title="Delete the identity"
        action="Delete identity"
        typed={externalId}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        onConfirm={async () => {
          await call("identities.deleteIdentity", { identity: id });
          await navigate({ to: "/identities" });
          await refresh();
          toast({ text: `Deleted the identity ${externalId}.` });
        }}
      >
        The keys of <strong className="font-medium">{externalId}</strong> stay valid, but have no owner and no shared
        limits any more. This cannot be undone.
      </ConfirmDialog>
    </Page>
  );
}

function Usage({ of: { id, externalId } }: { of: Identity }) {
  const [name, setName] = useState<RangeName>("7d");
  const range = useRange(name);
  const { data, error } = useQuery(read("analytics.getIdentityStats", { identity: id, ...range }));
  if (error) return <ErrorBox error={error} />;
  return (
    <div>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-2">
        <p>
          {data && (
            <>
              <span className="text-lg font-semibold">
                <Count value={data.total} />
              </span>{" "}
              verifications, {share(data.total - data.valid, data.total)} refused
              {data.creditsSpent > 0 && `, ${counted(data.creditsSpent, "credit")} spent`}
            </>
          )}
        </p>
        <RangePicker value={name} onChange={setName} />
      </div>
      <div className="min-h-48">{data && <VerificationChart of={data} height={160} />}</div>
      <p className="mt-3 text-xs">
        <Link to="/analytics" search={{ owner: externalId, range: name }} className="link">
          Open in the analytics
        </Link>
      </p>
    </div>
  );
}
