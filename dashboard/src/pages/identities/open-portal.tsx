import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Input, read } from "../../api/client.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Switch } from "../../ui/fields.tsx";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { Select } from "../../ui/select.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";

const ALL = ["list", "create", "reroll", "rename", "delete", "usage"] as const;

/** Creates a session of the portal for an identity, and shows the address of its page. */
export function OpenPortal({ externalId, onClose }: { externalId: string; onClose: () => void }) {
  const { data: apis, error } = useQuery(read("apis.listApis", { limit: 100 }));
  const [chosen, setChosen] = useState<string>();
  const [mayChange, setMayChange] = useState(true);
  const [url, setUrl] = useState<string>();
  const title = `Portal of ${externalId}`;
  const apiId = chosen ?? apis?.[0]?.apiId ?? "";
  const input: Input<"portal.createSession"> = {
    ...{ apiId, externalId },
    actions: mayChange ? [...ALL] : ["list", "usage"],
  };
  if (url !== undefined) {
    return (
      <Dialog title={title} isOpen onClose={onClose}>
        <p>Whoever has this address can use the session for 15 minutes. Give it to the owner of the keys only.</p>
        <div className="flex flex-wrap items-center gap-3">
          <a href={url} target="_blank" rel="noreferrer" className="link">
            Open the portal
          </a>
          <CopyButton text={url}>Copy the address</CopyButton>
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title={title}
      operation="portal.createSession"
      input={input}
      problem={apiId === "" && "There is no API"}
      action="Create session"
      needs={`apis.${apiId || "*"}.create_portal_session`}
      onClose={onClose}
      onDone={({ data }) => setUrl(new URL(data.url.reveal(), location.origin).href)}
    >
      {error && <ErrorBox error={error} />}
      {apis === undefined ? (
        <Skeleton lines={1} />
      ) : (
        <Select
          label="API"
          value={apiId}
          onChange={setChosen}
          options={apis.map((api) => ({ value: api.apiId, label: api.name }))}
        />
      )}
      <Switch
        label="The owner may create, replace, rename and delete keys"
        description="Otherwise the owner sees the keys and their usage."
        value={mayChange}
        onChange={setMayChange}
      />
    </FormDialog>
  );
}
