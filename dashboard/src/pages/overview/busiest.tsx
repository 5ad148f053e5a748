import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Data, read } from "../../api/client.ts";
import { localTime } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { type Range, usageRange } from "../../api/workspace-stats.ts";
import { countsOf, Ranking } from "../../ui/charts/ranking.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { Skeleton } from "../../ui/text/skeleton.tsx";
import { keyName, OwnerLink } from "../keys/key-state.tsx";

export const RANKED_MAX = 6;

/** The keys with the most verifications. */
export function BusiestKeys({ range }: { range: Range }) {
  const needs = "apis.*.read_analytics";
  const isAllowed = useCan()(needs);
  const { data, error } = useQuery({
    ...read("analytics.listTopKeys", { ...usageRange(range), limit: RANKED_MAX }),
    enabled: isAllowed,
  });
  return (
    <Busiest needs={isAllowed ? undefined : needs} error={error} of={data} range={range}>
      <Ranking
        label="Busiest keys"
        empty="No key was used in this range."
        entries={(data?.keys ?? []).map(({ keyId, apiId, ...key }) => ({
          id: keyId,
          label:
            apiId === undefined ? (
              <code className="font-mono text-xs">{keyId}</code>
            ) : (
              <>
                <Link to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId }} className="hover:underline">
                  {keyName({ keyId, ...key })}
                </Link>
                {key.externalId !== undefined && (
                  <span className="text-quiet">
                    {" "}
                    of <OwnerLink externalId={key.externalId} />
                  </span>
                )}
              </>
            ),
          ...countsOf(key),
        }))}
      />
    </Busiest>
  );
}

/** The identities whose keys have the most verifications. */
export function BusiestOwners({ range }: { range: Range }) {
  const needs = "identities.*.read_identity";
  const isAllowed = useCan()(needs);
  const { data, error } = useQuery({
    ...read("analytics.listTopIdentities", { ...usageRange(range), limit: RANKED_MAX }),
    enabled: isAllowed,
  });
  return (
    <Busiest needs={isAllowed ? undefined : needs} error={error} of={data} range={range}>
      <Ranking
        label="Busiest owners"
        empty="No key with an owner was used in this range."
        entries={(data?.identities ?? []).map(({ identityId, externalId, ...counts }) => ({
          id: identityId,
          label:
            externalId === undefined ? (
              <code className="font-mono text-xs">{identityId}</code>
            ) : (
              <Link to="/identities/$identityId" params={{ identityId }} className="hover:underline">
                {externalId}
              </Link>
            ),
          ...countsOf(counts),
        }))}
      />
    </Busiest>
  );
}

function Busiest({
  needs,
  error,
  of,
  range,
  children,
}: {
  needs: string | undefined;
  error: Error | null;
  of: Pick<Data<"analytics.listTopKeys">, "start" | "incompleteBefore"> | undefined;
  range: Range;
  children: ReactNode;
}) {
  if (needs !== undefined) return <p className="text-quiet">The root key lacks the permission {needs}.</p>;
  if (error) return <ErrorBox error={error} />;
  if (!of) return <Skeleton lines={RANKED_MAX} />;
  return (
    <>
      {children}
      {of.incompleteBefore !== undefined ? (
        <p className="mt-2 text-xs text-quiet">
          Counted from {localTime(of.incompleteBefore)} on: there are too many keys.
        </p>
      ) : (
        range.granularity === "minute" && (
          <p className="mt-2 text-xs text-quiet">Counted from {localTime(of.start)} on, in whole hours.</p>
        )
      )}
    </>
  );
}
