import type { Api } from "@latchkey/sdk";
import { lazy, Suspense, useState } from "react";
import { call, refresh } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { Button } from "../../ui/button.tsx";
import { toast, toastError } from "../../ui/overlays/toast.tsx";
import { Fact, Facts, None } from "../../ui/page.tsx";

const PortalDialog = lazy(async () => ({
  default: (await loadCode(() => import("./portal-dialog.tsx"))).PortalDialog,
}));

/** How the portal of the API looks and what its sessions may do. */
export function ApiPortal({ of: api }: { of: Api }) {
  const { apiId, portal } = api;
  const [isEditing, setEditing] = useState(false);
  const needs = `apis.${apiId}.update_api`;
  const { name, logoUrl, color, language, returnUrl } = portal?.page ?? {};
  const remove = async () => {
    await call("apis.updateApi", { apiId, portal: null });
    await refresh();
    toast({
      text: "New sessions of the portal say themselves how they look.",
      ...(portal && {
        undo: async () => {
          await call("apis.updateApi", { apiId, portal });
          await refresh();
        },
      }),
    });
  };
  return (
    <div className="space-y-3">
      <p className="max-w-prose text-quiet">
        In the portal, your customers manage their own keys. Say once how it looks and what they may do there; each
        session inherits it.
      </p>
      {portal && (
        <Facts>
          <Fact name="Your name">{name ?? <None />}</Fact>
          <Fact name="Logo">{logoUrl ? <code className="font-mono text-xs break-all">{logoUrl}</code> : <None />}</Fact>
          <Fact name="Color">
            {color ? (
              <span className="inline-flex items-center gap-2">
                <span aria-hidden className="size-4 rounded-sm border border-edge" style={{ background: color }} />
                <code className="font-mono text-xs">{color}</code>
              </span>
            ) : (
              <None text="the default" />
            )}
          </Fact>
          <Fact name="Language">{language ?? <None text="that of the browser" />}</Fact>
          <Fact name="Link back">
            {returnUrl ? <code className="font-mono text-xs break-all">{returnUrl}</code> : <None />}
          </Fact>
          <Fact name="Owners may">{portal.actions?.join(", ") ?? <None text="what the session says" />}</Fact>
        </Facts>
      )}
      <div className="flex flex-wrap gap-2">
        <Button needs={needs} onPress={() => setEditing(true)}>
          {portal ? "Change the portal…" : "Set up the portal…"}
        </Button>
        {portal && (
          <Button needs={needs} onPress={() => void remove().catch(toastError)}>
            Remove
          </Button>
        )}
      </div>
      <Suspense>{isEditing && <PortalDialog of={api} onClose={() => setEditing(false)} />}</Suspense>
    </div>
  );
}
