import { useState } from "react";
import { TextField } from "../../ui/fields/fields.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { type ExportedSystem, exportedSystems, importCommand, type SystemName } from "./import-systems.ts";

/** The commands that export the keys of another system and import them here. */
export function ImportCommand({ apiId, from }: { apiId: string; from: SystemName }) {
  const [sourceApi, setSourceApi] = useState("");
  const { exportedBy, note, file, sourceApi: choice }: ExportedSystem = exportedSystems[from];
  const target = { apiId, sourceApi: sourceApi.trim(), url: location.origin };
  return (
    <div className="space-y-4">
      <p>
        The command runs where the export is: key strings are hashed there and never sent. An import that was
        interrupted continues with the same command.
      </p>
      <p className="text-quiet">{note}</p>
      {choice && (
        <TextField
          label="The API at that system"
          description={choice === "must" ? "Its id." : "Its id. Empty: the keys of all its APIs."}
          value={sourceApi}
          onChange={setSourceApi}
          isMono
        />
      )}
      {exportedBy && <Step title="Export the keys" text={exportedBy} />}
      <Step title="Check every row, and import nothing" text={importCommand(from, target, true)} />
      <Step
        title="Import, with a root key that may create keys in this API"
        text={`latchkey login ${location.origin}\n${importCommand(from, target, false)}`}
      />
      <p className="text-xs text-quiet">
        {`${file}.report.jsonl has a line for each row: what was imported, what was not, and what to do about it.`}
      </p>
    </div>
  );
}

function Step({ title, text }: { title: string; text: string }) {
  return (
    <div>
      <p className="label mb-1">{title}</p>
      <Code text={text} label={`Copy: ${title}`} />
    </div>
  );
}
