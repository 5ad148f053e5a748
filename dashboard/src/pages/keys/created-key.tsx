import type { Secret } from "@latchkey/sdk";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { NewSecretDialog } from "../../ui/overlays/new-secret-dialog.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { VerifyBox } from "./verify-box.tsx";

/** Shows the secret of a new key, this one time. It leaves the page only by the button at the end. */
export function CreatedKey({
  apiId,
  keyId,
  secret,
  title,
  onClose,
}: {
  apiId: string;
  keyId: string;
  secret: Secret;
  title: string;
  onClose: () => void;
}) {
  const [isVerifying, setVerifying] = useState(false);
  const text = secret.reveal();
  return (
    <NewSecretDialog
      title={title}
      secret={text}
      copy="Copy key"
      about="This is the only time that the key is shown: the service keeps a hash of it. Copy it now, and give it to its user over a safe channel."
      footer={
        <Link to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId }} onClick={onClose} className="link mr-auto">
          Open the key
        </Link>
      }
      onClose={onClose}
    >
      <div>
        <p className="label mb-1">Your user sends it with each request, for example as</p>
        <Code text={`Authorization: Bearer ${text}`} label="Copy the header" />
      </div>
      <div>
        <p className="label mb-1">Your program verifies it</p>
        <Code
          text={[
            `import { Latchkey } from "@latchkey/sdk";`,
            `const latchkey = new Latchkey({ url: ${JSON.stringify(location.origin)} });`,
            "const { data } = await latchkey.keys.verifyKey({ key });",
          ].join("\n")}
          label="Copy the program"
        />
      </div>
      {isVerifying ? (
        <VerifyBox apiId={apiId} secret={text} isAtOnce />
      ) : (
        <Button onPress={() => setVerifying(true)}>Verify it now</Button>
      )}
    </NewSecretDialog>
  );
}
