import { type FormEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { Button } from "../ui/button.tsx";
import { TextField } from "../ui/fields/fields.tsx";
import { Segments } from "../ui/fields/segments.tsx";
import { Select } from "../ui/fields/select.tsx";
import { Toasts } from "../ui/overlays/toast.tsx";
import { Code } from "../ui/text/code-snippet.tsx";
import { bodyOf, bodyOfJson, type CallField, fieldsOf, parseJson, textsOf } from "./call-fields.ts";
import { examplesOf, highlightLanguages, type OperationData } from "./examples.ts";
import { highlightCode } from "./highlight.ts";

/** Shows the form that sends a request, in the place of its button. */
export function showCallForm(place: HTMLElement, data: OperationData, url: string): void {
  createRoot(place).render(
    <>
      <CallForm data={data} url={url} />
      <Toasts />
    </>,
  );
}

interface Received {
  readonly status: number;
  readonly ms: number;
  readonly text: string;
}

function CallForm({ data: { command, schema, input }, url }: { data: OperationData; url: string }) {
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const [isJson, setJson] = useState(fields === undefined);
  const [texts, setTexts] = useState(() => textsOf(fields ?? [], input));
  const [json, setJsonText] = useState(() => JSON.stringify(input, null, 2));
  const [rootKey, setRootKey] = useState("");
  const [state, setState] = useState<{ isPending?: boolean; received?: Received; failure?: string }>({});
  const session = useSession(url);
  const given = isJson ? bodyOfJson(json, fields === undefined) : bodyOf(fields ?? [], texts);
  const problems = "problems" in given ? given.problems : {};
  const body = "body" in given ? given.body : undefined;
  // The body for which the question before a deletion is open: another one needs another question.
  const [asksAbout, setAsksAbout] = useState<string>();
  const asks = asksAbout !== undefined && asksAbout === JSON.stringify(body);
  useExamples(command, body, url);

  const switchTo = (mode: "fields" | "json") => {
    if (mode === "json" && body !== undefined) setJsonText(JSON.stringify(body, null, 2));
    if (mode === "fields" && body !== undefined) setTexts(textsOf(fields ?? [], body));
    setJson(mode === "json");
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (body === undefined) return;
    if (command.deletes) setAsksAbout(JSON.stringify(body));
    else void send();
  };
  const send = async () => {
    setAsksAbout(undefined);
    setState({ isPending: true });
    try {
      setState({ received: await call(url, command.operation, body, rootKey.trim(), session !== undefined) });
    } catch {
      setState({ failure: "The service cannot be reached." });
    }
  };
  return (
    <form onSubmit={submit} className="space-y-3" aria-label={`Send a request to ${command.operation}`}>
      <TextField
        label="Root key"
        type="password"
        value={rootKey}
        onChange={setRootKey}
        isMono
        autoFocus
        placeholder="lk_root_…"
        description={
          session === undefined
            ? "It is sent to this service only, and forgotten with the page."
            : `Empty: the session of the dashboard, ${session}.`
        }
      />
      {fields !== undefined && (
        <Segments
          label="Body"
          options={{ fields: "Fields", json: "JSON" }}
          value={isJson ? "json" : "fields"}
          onChange={switchTo}
        />
      )}
      {isJson ? (
        <TextField
          label="Body"
          value={json}
          onChange={setJsonText}
          lines={10}
          isMono
          problem={"problem" in given ? given.problem : undefined}
        />
      ) : (
        fields?.map((field) => (
          <Field
            key={field.name}
            field={field}
            value={texts[field.name] ?? ""}
            onChange={(text) => setTexts((before) => ({ ...before, [field.name]: text }))}
            problem={problems[field.name]}
          />
        ))
      )}
      <Button
        type="submit"
        kind="primary"
        isPending={state.isPending ?? false}
        offBecause={body === undefined ? "A field has a value that cannot be sent" : undefined}
      >
        Send
      </Button>
      {asks && <Question operation={command.operation} onCancel={() => setAsksAbout(undefined)} onConfirm={send} />}
      <div role="status">
        {state.failure !== undefined && <p className="text-bad">{state.failure}</p>}
        {state.received && <Answer received={state.received} />}
      </div>
    </form>
  );
}

/** Asks before a call that deletes. */
function Question({
  operation,
  onCancel,
  onConfirm,
}: {
  operation: string;
  onCancel: () => void;
  onConfirm: () => void;
}) {
  const id = useId();
  return (
    <div
      role="alertdialog"
      aria-labelledby={id}
      className="space-y-2 rounded-md border border-bad/50 p-3"
      onKeyDown={({ key }) => key === "Escape" && onCancel()}
    >
      <p id={id}>
        <code>{operation}</code> deletes something. Send the request?
      </p>
      <div className="flex gap-2">
        <Button onPress={onCancel} autoFocus>
          Cancel
        </Button>
        <Button kind="danger" onPress={onConfirm}>
          Send and delete
        </Button>
      </div>
    </div>
  );
}

function Field({
  field: { name, kind, isRequired, description, values },
  value,
  onChange,
  problem,
}: {
  field: CallField;
  value: string;
  onChange: (text: string) => void;
  problem: string | undefined;
}) {
  if (kind === "choice") {
    const options = [...(isRequired ? [] : [""]), ...values].map((one) => ({ value: one, label: one || "not sent" }));
    return <Select label={name} value={value} onChange={onChange} options={options} />;
  }
  return (
    <TextField
      label={name}
      value={value}
      onChange={onChange}
      isMono
      isRequired={isRequired}
      description={description}
      problem={problem}
      {...(kind === "json" && { lines: value.includes("\n") ? 5 : 1 })}
    />
  );
}

function Answer({ received: { status, ms, text } }: { received: Received }) {
  const body = parseJson(text);
  return (
    <div className="space-y-2">
      <p>
        <strong className={status < 400 ? "text-good" : "text-bad"}>{status}</strong> in {ms} ms
      </p>
      <Code text={body === undefined ? text : JSON.stringify(body, null, 2)} label="Copy the answer" />
    </div>
  );
}

/** With a root key the call is that of a program; without one it is that of the dashboard, if somebody is signed in. */
async function call(
  url: string,
  operation: string,
  body: unknown,
  rootKey: string,
  hasSession: boolean,
): Promise<Received> {
  const asSession = rootKey === "" && hasSession;
  const startedAt = performance.now();
  const response = await fetch(`${url}${asSession ? "/dashboard/api" : ""}/v2/${operation}`, {
    method: "POST",
    credentials: asSession ? "same-origin" : "omit",
    headers: { "Content-Type": "application/json", ...(rootKey !== "" && { Authorization: `Bearer ${rootKey}` }) },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, ms: Math.round(performance.now() - startedAt), text };
}

/** The name of the root key that is signed in to the dashboard; undefined: none is. */
function useSession(url: string): string | undefined {
  const [name, setName] = useState<string>();
  useEffect(() => {
    fetch(`${url}/dashboard/session`)
      .then(async (response) => {
        if (response.ok) setName((await response.json()).data.rootKey.name || "a root key");
      })
      // Without a session a root key is needed.
      .catch(() => {});
  }, [url]);
  return name;
}

/** Writes the call with this body into the examples of the page. */
function useExamples(command: OperationData["command"], body: unknown, url: string): void {
  const text = JSON.stringify(body);
  const shown = useRef(text);
  useEffect(() => {
    if (text === undefined || shown.current === text) return;
    shown.current = text;
    const examples = examplesOf(command, JSON.parse(text), url);
    for (const [language, code] of Object.entries(examples)) {
      const element = document.querySelector(`#code-${language} code`);
      const html = highlightCode(code, highlightLanguages[language as keyof typeof highlightLanguages]);
      if (element && html !== undefined) element.innerHTML = html;
    }
  }, [command, text, url]);
}
