import { LatchkeyError } from "@latchkey/sdk";
import { useState } from "react";
import { FileTrigger } from "react-aria-components";
import { call, type Data, refresh } from "../../api/client.ts";
import { counted, exactNumber } from "../../api/format.ts";
import { errorTypeOf } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { Select } from "../../ui/fields/select.tsx";
import { Fold } from "../../ui/fold.tsx";
import { Dialog } from "../../ui/overlays/dialog.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { ImportCommand } from "./import-command.tsx";
import { FILE_BYTES_MAX, type Rows, readRows } from "./import-rows.ts";
import { exportedSystems, type SystemName } from "./import-systems.ts";

const KEYS_PER_CALL = 200;
const SHOWN_MAX = 5;
const systems = (Object.keys(exportedSystems) as SystemName[]).toSorted((a) => (a === "generic" ? -1 : 0));

type State =
  | { step: "choose"; problem?: string }
  | { step: "check"; rows: Rows }
  | { step: "run"; rows: Rows; count: number }
  | { step: "done"; imported: number; failed: readonly string[]; error?: unknown };

/**
 * Imports a file of keys: first shows what would be imported, then imports it with progress, and reports. For exports of
 * other systems it shows the command that maps them.
 */
export function ImportKeys({ apiId, onClose }: { apiId: string; onClose: () => void }) {
  const [state, setState] = useState<State>({ step: "choose" });
  const [from, setFrom] = useState<SystemName>("generic");
  const [text, setText] = useState("");
  const [migrationId, setMigrationId] = useState("dashboard");
  const check = async (text: string) => {
    try {
      const rows = await readRows(text);
      setState({ step: "check", rows });
    } catch (error) {
      setState({ step: "choose", problem: error instanceof Error ? error.message : String(error) });
    }
  };
  const read = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > FILE_BYTES_MAX) {
      return setState({ step: "choose", problem: "The file is larger than 10 MiB: use the command line." });
    }
    await check(await file.text());
  };
  const run = async (rows: Rows) => {
    const failed: string[] = [];
    let imported = 0;
    let error: unknown;
    try {
      for (let start = 0; start < rows.keys.length; start += KEYS_PER_CALL) {
        setState({ step: "run", rows, count: start });
        const keys = rows.keys.slice(start, start + KEYS_PER_CALL);
        const { data } = await call("keys.migrateKeys", { migrationId, apiId, keys });
        imported += data.migrated.length;
        const { stopped } = data;
        failed.push(...data.failed.slice(0, data.failed.length - (stopped?.count ?? 0)));
        if (stopped) throw refusalOf(stopped);
      }
    } catch (thrown) {
      error = thrown;
    }
    setState({ step: "done", imported, failed, error });
    await refresh();
  };
  return (
    <Dialog
      title="Import keys"
      isOpen
      onClose={onClose}
      onSubmit={state.step === "choose" && from === "generic" ? () => void check(text) : undefined}
      isDismissable={state.step !== "run"}
      footer={
        state.step === "choose" && from !== "generic" ? (
          <Button onPress={onClose}>Close</Button>
        ) : state.step === "choose" ? (
          <>
            <Button onPress={onClose}>Cancel</Button>
            <Button kind="primary" type="submit" offBecause={text.trim() === "" && "Choose or paste keys first"}>
              Check them
            </Button>
          </>
        ) : state.step === "check" ? (
          <>
            <Button onPress={() => setState({ step: "choose" })}>Back</Button>
            <Button
              kind="primary"
              needs={`apis.${apiId}.create_key`}
              onPress={() => void run(state.rows)}
              offBecause={state.rows.keys.length === 0 && "There is no key to import"}
            >
              Import {counted(state.rows.keys.length, "key")}
            </Button>
          </>
        ) : state.step === "done" ? (
          <Button kind="primary" onPress={onClose}>
            Close
          </Button>
        ) : undefined
      }
    >
      {state.step === "choose" && (
        <Select
          label="Where the keys come from"
          value={from}
          onChange={setFrom}
          options={systems.map((value) => ({ value, label: exportedSystems[value].label }))}
        />
      )}
      {state.step === "choose" && from !== "generic" && <ImportCommand key={from} apiId={apiId} from={from} />}
      {state.step === "choose" && from === "generic" && (
        <>
          <p>
            Your users keep their keys: the service stores SHA-256 hashes. Key strings are hashed in this browser and
            not sent. Choose CSV with a line of names, a JSON list, or one key per line.
          </p>
          <FileTrigger acceptedFileTypes={[".csv", ".json", ".txt"]} onSelect={(files) => void read(files?.[0])}>
            <Button>Choose a file…</Button>
          </FileTrigger>
          <TextField
            label="Or paste"
            lines={6}
            isMono
            value={text}
            onChange={setText}
            placeholder={"key,name,owner\nsk_live_…,ci-deploy,acme"}
            description="Columns: key or hash, name, owner, expires, enabled, roles, permissions, credits, ratelimits and meta as JSON, meta.NAME."
          />
          <TextField
            label="Name of the source"
            description="Groups what comes from one system: see keys.migrateKeys."
            value={migrationId}
            onChange={setMigrationId}
          />
          {state.problem && (
            <p role="alert" className="text-bad">
              {state.problem}
            </p>
          )}
          <div className="border-b border-line">
            <Fold title="With the command line">
              <ImportCommand apiId={apiId} from="generic" />
            </Fold>
          </div>
        </>
      )}
      {state.step === "check" && <Checked rows={state.rows} />}
      {state.step === "run" && (
        <>
          <progress
            value={state.count}
            max={state.rows.keys.length}
            aria-label="Import"
            className="h-2 w-full accent-accent"
          />
          <p className="text-quiet tabular-nums">
            {exactNumber(state.count)} of {exactNumber(state.rows.keys.length)}
          </p>
        </>
      )}
      {state.step === "done" && (
        <>
          <p>
            {counted(state.imported, "key")} imported
            {state.failed.length > 0 && `, ${counted(state.failed.length, "key")} exist already`}.
          </p>
          {state.error !== undefined && <ErrorBox error={state.error} />}
        </>
      )}
    </Dialog>
  );
}

/** Why the service stopped in the middle of a call. */
function refusalOf({ status, type, detail }: NonNullable<Data<"keys.migrateKeys">["stopped"]>): LatchkeyError {
  return new LatchkeyError({ type: errorTypeOf(type), operation: "keys.migrateKeys", status, detail });
}

/** What would be imported. Nothing was sent. */
function Checked({ rows: { keys, rejected } }: { rows: Rows }) {
  return (
    <>
      <p>
        {counted(keys.length, "key")} can be imported, {counted(rejected.length, "row")} cannot. Nothing was sent yet.
      </p>
      {keys.length > 0 && (
        <table className="w-full text-left">
          <caption className="sr-only">The first keys</caption>
          <thead>
            <tr className="label border-b border-line">
              <th className="py-1 font-medium">Hash</th>
              <th className="py-1 font-medium">Name</th>
              <th className="py-1 font-medium">Owner</th>
            </tr>
          </thead>
          <tbody>
            {keys.slice(0, SHOWN_MAX).map(({ hash, name, externalId }) => (
              <tr key={hash} className="border-b border-line">
                <td className="py-1 font-mono text-xs">{hash.slice(0, 12)}…</td>
                <td className="py-1">{name ?? "–"}</td>
                <td className="py-1">{externalId ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {rejected.length > 0 && (
        <ul className="max-h-40 list-disc space-y-1 overflow-y-auto pl-5">
          {rejected.slice(0, 100).map(({ row, reason }) => (
            <li key={row}>
              Row {row}: {reason}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
