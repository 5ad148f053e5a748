import type { Secret } from "@latchkey/sdk";
import { localTime } from "../../api/format.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/overlays/dialog.tsx";
import { CopyButton } from "../../ui/text/copy-button.tsx";

/** Shows the address of the page, this one time. */
export function CreatedSession({
  owner,
  url,
  expiresAt,
  onClose,
}: {
  owner: string;
  url: Secret;
  expiresAt: number;
  onClose: () => void;
}) {
  const address = new URL(url.reveal(), location.origin).href;
  return (
    <Dialog
      title={`Portal of ${owner}`}
      isOpen
      onClose={onClose}
      isDismissable={false}
      footer={<Button onPress={onClose}>Close</Button>}
    >
      <p>
        This is the only time that the address is shown. It gives access to the keys of {owner} until{" "}
        {localTime(expiresAt)}: give it to this owner only.
      </p>
      <div className="rounded-md border border-accent/50 bg-accent-soft p-3">
        <code className="font-mono text-xs break-all" data-secret>
          {address}
        </code>
      </div>
      <div className="flex flex-wrap items-center gap-3">
        <CopyButton text={address} kind="primary">
          Copy the address
        </CopyButton>
        <a href={address} target="_blank" rel="noreferrer" className="link">
          Open the portal
        </a>
      </div>
    </Dialog>
  );
}
