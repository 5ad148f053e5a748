import schema from "virtual:operation/apis.updateApi";
import type { Api } from "@latchkey/sdk";
import { useState } from "react";
import { type Input, useCall } from "../../api/client.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Switch, TagsField, TextField } from "../../ui/fields.tsx";
import { toast } from "../../ui/toast.tsx";

/** What an API gives its keys by default, and who may use them. Only what was changed is sent. */
export function ApiSettings({ api, onClose }: { api: Api; onClose: () => void }) {
  const { apiId } = api;
  const update = useCall("apis.updateApi");
  const [name, setName] = useState(api.name);
  const [prefix, setPrefix] = useState(api.prefix ?? "");
  const [byteLength, setByteLength] = useState(api.byteLength === undefined ? "" : String(api.byteLength));
  const [isProtected, setProtected] = useState(api.deleteProtection ?? false);
  const [allowedIps, setAllowedIps] = useState<readonly string[]>(api.allowedIps ?? []);
  const [isReadable, setReadable] = useState(api.ownKeyAccess ?? false);
  const problems = {
    name: textProblem(member(schema, "name"), name),
    prefix: prefix === "" ? undefined : textProblem(member(schema, "prefix"), prefix),
    byteLength: byteLength === "" ? undefined : numberProblem(member(schema, "byteLength"), Number(byteLength)),
  };
  const change: Input<"apis.updateApi"> = {
    apiId,
    ...(name !== api.name && { name }),
    ...(prefix !== (api.prefix ?? "") && { prefix: prefix === "" ? null : prefix }),
    ...(byteLength !== String(api.byteLength ?? "") && { byteLength: byteLength === "" ? null : Number(byteLength) }),
    ...(isProtected !== (api.deleteProtection ?? false) && { deleteProtection: isProtected }),
    ...(isReadable !== (api.ownKeyAccess ?? false) && { ownKeyAccess: isReadable }),
    ...(allowedIps.join() !== (api.allowedIps ?? []).join() && {
      allowedIps: allowedIps.length === 0 ? null : allowedIps,
    }),
  };
  const isUnchanged = Object.keys(change).length === 1;
  const save = () =>
    update.mutate(change, {
      onSuccess: () => {
        toast({ text: `Saved the settings of ${name}.` });
        onClose();
      },
    });
  return (
    <Dialog
      title={`Settings of ${api.name}`}
      isOpen
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Cancel</Button>
          <Button
            kind="primary"
            onPress={save}
            isPending={update.isPending}
            offBecause={Object.values(problems).find(Boolean) ?? (isUnchanged && "Nothing has changed")}
          >
            Save
          </Button>
        </>
      }
    >
      <TextField label="Name" value={name} onChange={setName} problem={problems.name} />
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Default prefix of new keys"
          description="Empty: none."
          value={prefix}
          onChange={setPrefix}
          problem={problems.prefix}
          isMono
        />
        <TextField
          label="Random bytes of new keys"
          description="Empty: 16."
          type="number"
          value={byteLength}
          onChange={setByteLength}
          problem={problems.byteLength}
        />
      </div>
      <TagsField
        label="Allowed addresses"
        description="IPv4 and IPv6 addresses and CIDRs that may use the keys. Empty: every address."
        value={allowedIps}
        onChange={setAllowedIps}
        placeholder="10.0.0.0/8"
      />
      <Switch
        label="Protect from deletion"
        description="The API cannot be deleted while this is on."
        value={isProtected}
        onChange={setProtected}
      />
      <Switch
        label="Let holders read their keys"
        description="With the key string alone, keys.getOwnKey answers what is left, limits, expiry and usage."
        value={isReadable}
        onChange={setReadable}
      />
      {update.error && <ErrorBox error={update.error} />}
    </Dialog>
  );
}
