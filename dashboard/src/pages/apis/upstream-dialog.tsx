import schema from "virtual:operation/apis.updateApi";
import type { Api } from "@latchkey/sdk";
import { Plus, X } from "lucide-react";
import { useState } from "react";
import type { Input } from "../../api/client.ts";
import { member, numberProblem, textProblem } from "../../api/schema.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { FormDialog } from "../../ui/overlays/form-dialog.tsx";
import { toast } from "../../ui/overlays/toast.tsx";
import { outages } from "./outages.ts";

interface Header {
  readonly name: string;
  readonly value: string;
}
type Outage = keyof typeof outages;

const declared = member(schema, "upstream");
const declaredHeaders = member(declared, "headers");

/** Sets the endpoint that is asked about unknown keys. Values of headers that are set cannot be read. */
export function UpstreamDialog({ api: { apiId, upstream }, onClose }: { api: Api; onClose: () => void }) {
  const [url, setUrl] = useState(upstream?.url ?? "");
  const [headers, setHeaders] = useState<readonly Header[]>(
    upstream?.headers.map((name) => ({ name, value: "" })) ?? [{ name: "Authorization", value: "" }],
  );
  const [timeout, setTimeout] = useState(String(upstream?.timeout ?? 2_000));
  const [onOutage, setOnOutage] = useState<Outage>(upstream?.onOutage ?? "unavailable");
  const urlProblem =
    /^https?:\/\//.test(url) && URL.canParse(url) ? undefined : "Enter an address that begins with https://";
  const timeoutProblem = numberProblem(member(declared, "timeout"), timeout === "" ? Number.NaN : Number(timeout));
  const input = (withValues: boolean): Input<"apis.updateApi"> => ({
    apiId,
    upstream: {
      url,
      headers: headers.map(({ name, value }) => ({ name, value: withValues ? value : "$VALUE" })),
      timeout: Number(timeout),
      onOutage,
    },
  });
  const set = (index: number, change: Partial<Header>) =>
    setHeaders(headers.map((header, at) => (at === index ? { ...header, ...change } : header)));
  return (
    <FormDialog
      title={upstream ? "Change the upstream verifier" : "Set an upstream verifier"}
      operation="apis.updateApi"
      input={input(true)}
      copied={input(false)}
      problem={urlProblem ?? headersProblem(headers) ?? timeoutProblem}
      action="Save verifier"
      needs={`apis.${apiId}.update_api`}
      onClose={onClose}
      onDone={() => {
        onClose();
        toast({ text: "Saved the upstream verifier." });
      }}
    >
      <p>
        The address gets a POST with {`{ "key", "apiId" }`} for each key that is unknown here, also for invented ones,
        so it must be yours. It answers with {`{ "valid": true }`} and the members of the key, or with{" "}
        {`{ "valid": false }`}.
      </p>
      <TextField
        label="Address"
        description="http:// and private addresses need LATCHKEY_UPSTREAM_ALLOW_PRIVATE=yes."
        value={url}
        onChange={setUrl}
        problem={url === "" ? undefined : urlProblem}
        placeholder="https://old.example.com/verify"
        isMono
        autoFocus
      />
      <fieldset className="space-y-2">
        <legend className="label mb-1">Headers of each question</legend>
        {headers.map((header, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity while their names are typed.
          <div key={index} className="grid grid-cols-[minmax(0,1fr)_minmax(0,1fr)_2rem] items-end gap-2">
            <TextField label="Name" value={header.name} onChange={(name) => set(index, { name })} isMono />
            <TextField
              label={`Value of ${header.name || `header ${index + 1}`}`}
              type="password"
              value={header.value}
              onChange={(value) => set(index, { value })}
              placeholder={upstream?.headers.includes(header.name) ? "Enter it again" : ""}
              isMono
            />
            <IconButton
              label={`Remove the header ${header.name || index + 1}`}
              onPress={() => setHeaders(headers.filter((_, at) => at !== index))}
            >
              <X aria-hidden />
            </IconButton>
          </div>
        ))}
        <Button
          onPress={() => setHeaders([...headers, { name: "", value: "" }])}
          offBecause={headers.length >= declaredHeaders.maxItems! && `At most ${declaredHeaders.maxItems} headers`}
        >
          <Plus aria-hidden />
          Add header
        </Button>
        <p className="text-xs text-quiet">
          Values are stored encrypted and never shown: saving replaces all of them. Remove a header that you do not
          need.
        </p>
      </fieldset>
      <div className="grid gap-4 sm:grid-cols-[9rem_minmax(0,1fr)]">
        <TextField
          label="Waits at most (ms)"
          type="number"
          value={timeout}
          onChange={setTimeout}
          problem={timeoutProblem}
        />
        <Select
          label="Without an answer"
          value={onOutage}
          onChange={setOnOutage}
          options={(Object.keys(outages) as Outage[]).map((value) => ({ value, label: outages[value] }))}
        />
      </div>
    </FormDialog>
  );
}

function headersProblem(headers: readonly Header[]): string | undefined {
  for (const { name, value } of headers) {
    if (name === "") return "Enter the name of each header, or remove it";
    const nameProblem = textProblem(member(declaredHeaders.items!, "name"), name);
    if (nameProblem) return `${name}: ${nameProblem}`;
    if (value === "") return `Enter the value of ${name}, or remove it`;
    const valueProblem = textProblem(member(declaredHeaders.items!, "value"), value);
    if (valueProblem) return `${name}: ${valueProblem}`;
  }
  return undefined;
}
