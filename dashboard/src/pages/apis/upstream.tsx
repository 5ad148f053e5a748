import type { Api } from "@latchkey/sdk";
import { lazy, Suspense, useState } from "react";
import { call, refresh } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { duration } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog } from "../../ui/overlays/dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";
import { outages } from "./outages.ts";

const UpstreamDialog = lazy(async () => ({
  default: (await loadCode(() => import("./upstream-dialog.tsx"))).UpstreamDialog,
}));

/** The endpoint that is asked about unknown keys, and what it does in words. */
export function Upstream({ of: api }: { of: Api }) {
  const { apiId, upstream } = api;
  const can = useCan();
  const [dialog, setDialog] = useState<"edit" | "remove">();
  const needs = `apis.${apiId}.update_api`;
  const createKey = `apis.${apiId}.create_key`;
  return (
    <div className="space-y-3">
      <p className="max-w-prose text-quiet">
        To move without an export: a verification of a key that is unknown here asks your former system about it. A yes
        creates the key here, and the verification goes on with it. A no is NOT_FOUND.
      </p>
      {upstream && (
        <Facts>
          <Fact name="Address">
            <code className="font-mono text-xs break-all">{upstream.url}</code>
          </Fact>
          <Fact name="Headers">
            {upstream.headers.length === 0 ? (
              <None />
            ) : (
              <>
                <code className="font-mono text-xs">{upstream.headers.join(", ")}</code>
                <span className="text-xs text-quiet"> · their values are stored encrypted and never shown</span>
              </>
            )}
          </Fact>
          <Fact name="Waits at most">{duration(upstream.timeout)}</Fact>
          <Fact name="Without an answer">{outages[upstream.onOutage]}. Known keys are not affected.</Fact>
        </Facts>
      )}
      <div className="flex flex-wrap gap-2">
        <Button
          needs={needs}
          offBecause={!can(createKey) && `The root key lacks the permission ${createKey}`}
          onPress={() => setDialog("edit")}
        >
          {upstream ? "Change the verifier…" : "Set a verifier…"}
        </Button>
        {upstream && (
          <Button kind="danger" needs={needs} onPress={() => setDialog("remove")}>
            Remove…
          </Button>
        )}
      </div>
      <Suspense>{dialog === "edit" && <UpstreamDialog api={api} onClose={() => setDialog(undefined)} />}</Suspense>
      <ConfirmDialog
        title="Remove the upstream verifier"
        action="Remove verifier"
        isOpen={dialog === "remove"}
        onClose={() => setDialog(undefined)}
        onConfirm={async () => {
          await call("apis.updateApi", { apiId, upstream: null });
          await refresh();
          toast({ text: "Removed the upstream verifier." });
        }}
      >
        Keys that have not arrived yet are then NOT_FOUND. Those that were created from its answers stay.
      </ConfirmDialog>
    </div>
  );
}
