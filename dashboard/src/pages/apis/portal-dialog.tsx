import type { Api } from "@latchkey/sdk";
import { useState } from "react";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { ActionsField, usualActions } from "../portal/actions-field.tsx";
import { BrandFields, brandFrom, lookOf } from "../portal/brand.tsx";

/** Sets what sessions of the portal inherit from their API. */
export function PortalDialog({ of: { apiId, portal }, onClose }: { of: Api; onClose: () => void }) {
  // Settings without actions leave them to the calls that create sessions.
  const [actions, setActions] = useState(portal ? (portal.actions ?? []) : usualActions);
  const areLeftOut = actions.length === 0 && portal !== undefined && portal.actions === undefined;
  const [brand, setBrand] = useState(brandFrom(portal?.page));
  const page = lookOf(brand);
  return (
    <FormDialog
      title="The portal of this API"
      operation="apis.updateApi"
      input={{
        apiId,
        portal: { ...(!areLeftOut && { actions }), ...(Object.keys(page.value).length > 0 && { page: page.value }) },
      }}
      problem={actions.length === 0 && !areLeftOut ? "Choose what the owners may do" : page.problem}
      action="Save"
      needs={`apis.${apiId}.update_api`}
      onClose={onClose}
      onDone={() => {
        onClose();
        toast({ text: "New sessions of the portal look like this." });
      }}
    >
      <p>Each new session has this look and these actions, unless the call that creates it says otherwise.</p>
      <ActionsField label="Owners may" value={actions} onChange={setActions} />
      <BrandFields value={brand} onChange={setBrand} problem={page.problem} />
    </FormDialog>
  );
}
