import schema from "virtual:operation/keys.reportLeak";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { type Data, isProblem, latchkey, refresh } from "../../api/client.ts";
import { member, textProblem } from "../../api/schema.ts";
import { useCan } from "../../api/session.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button } from "../../ui/button.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { Dialog } from "../../ui/overlays/dialog.tsx";
import { CopyButton } from "../../ui/text/copy-button.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { keyName } from "../keys/key-state.tsx";

type Found = Data<"keys.whoami">;
type State = { step: "enter"; isPending?: boolean; error?: unknown } | { step: "reported"; lookup: Lookup };
/** What is known of a reported key. `found` undefined: the root key may not look keys up. Null: there is no such key. */
type Lookup = { found: Found | null | undefined } | { error: unknown };

/** Reports a key that was found where it should not be. The key string is in the body of a call and nowhere else. */
export function ReportLeak({ onClose }: { onClose: () => void }) {
  const canRead = useCan()("apis.some.read_key");
  const [key, setKey] = useState("");
  const [location, setLocation] = useState("");
  const [state, setState] = useState<State>({ step: "enter" });
  const locationProblem =
    location === "" || (/^https?:\/\//.test(location) && URL.canParse(location))
      ? undefined
      : "Enter an address that begins with https:// or http://";
  const problem =
    key.trim() === "" ? "Enter the key" : (textProblem(member(schema, "key"), key.trim()) ?? locationProblem);
  const where = location === "" ? {} : { location };
  const report = async () => {
    if (problem || (state.step === "enter" && state.isPending)) return;
    setState({ step: "enter", isPending: true });
    try {
      await latchkey.keys.reportLeak({ key: key.trim(), ...where });
    } catch (error) {
      setState({ step: "enter", error });
      return;
    }
    const lookup = canRead ? await lookUp(key.trim()) : { found: undefined };
    setKey("");
    setState({ step: "reported", lookup });
    await refresh();
  };
  if (state.step === "reported") {
    return (
      <Dialog
        title="Report a leaked key"
        isOpen
        onClose={onClose}
        footer={
          <Button kind="primary" onPress={onClose}>
            Close
          </Button>
        }
      >
        <Reported lookup={state.lookup} onClose={onClose} />
      </Dialog>
    );
  }
  return (
    <Dialog
      title="Report a leaked key"
      isOpen
      onClose={onClose}
      onSubmit={() => void report()}
      footer={
        <>
          <span className="mr-auto max-sm:w-full">
            {/* The call has no key: it would be in the history of a shell. */}
            <CopyButton kind="quiet" text={() => snippetsOf("keys.reportLeak", { key: "$KEY", ...where }).curl}>
              Copy as curl
            </CopyButton>
          </span>
          <Button onPress={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isPending={state.isPending ?? false} offBecause={problem}>
            Report key
          </Button>
        </>
      }
    >
      <p>
        A key that was found in a repository, a log or a chat is marked or disabled, as the settings of its API say, and
        the event leak.reported is sent. The key string is never logged.
      </p>
      <TextField
        label="Key"
        type="password"
        value={key}
        onChange={setKey}
        placeholder="Paste the key"
        isMono
        autoFocus
      />
      <TextField
        label="Where it was found"
        description="An address, which the event and the audit log have. Can be empty."
        value={location}
        onChange={setLocation}
        problem={locationProblem}
        placeholder="https://github.com/acme/app/blob/main/config.js"
      />
      {state.error !== undefined && <ErrorBox error={state.error} />}
    </Dialog>
  );
}

/** The key with this string, if the root key may read it. The answer to a report does not say whether it exists. */
async function lookUp(key: string): Promise<Lookup> {
  try {
    return { found: (await latchkey.keys.whoami({ key })).data };
  } catch (error) {
    return isProblem(error, "data/key_not_found") ? { found: null } : { error };
  }
}

function Reported({ lookup, onClose }: { lookup: Lookup; onClose: () => void }) {
  if ("error" in lookup) {
    return (
      <>
        <p>
          The report was taken. If a key has this string, it is marked or disabled within moments. Which key it is could
          not be read:
        </p>
        <ErrorBox error={lookup.error} />
      </>
    );
  }
  const { found } = lookup;
  if (found === undefined) {
    return (
      <p>
        The report was taken. If a key has this string, it is marked or disabled within moments. The answer is the same
        for every text.
      </p>
    );
  }
  if (found === null) {
    return (
      <p>
        The report was taken, but no key that your root key may read has this string. If it is a key of another
        workspace, it is marked or disabled there.
      </p>
    );
  }
  const { apiId, keyId } = found;
  return (
    <p>
      The report was taken. It is the key{" "}
      <Link to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId }} onClick={onClose} className="link">
        {keyName(found)}
      </Link>
      {found.identity && ` of ${found.identity.externalId}`}, which is marked or disabled within moments. Rotate it, and
      give its owner the new one.
    </p>
  );
}
