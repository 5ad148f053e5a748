import apiSchema from "virtual:operation/apis.createApi";
import keySchema from "virtual:operation/keys.createKey";
import type { Secret } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import { type OperationName, read, useCall } from "../api/client.ts";
import { member, textProblem } from "../api/schema.ts";
import { Button } from "../ui/button.tsx";
import { classes } from "../ui/classes.ts";
import { TextField } from "../ui/fields/fields.tsx";
import { Select } from "../ui/fields/select.tsx";
import { Page } from "../ui/page.tsx";
import { CodeSnippet } from "../ui/text/code-snippet.tsx";
import { CopyButton } from "../ui/text/copy-button.tsx";
import { ErrorBox } from "../ui/text/error-box.tsx";
import { VerifyBox } from "./keys/verify-box.tsx";

const NEW = "new";

/** The first key, in three steps: an API, a key, a verification. Each shows its call with the values of the form. */
export function Welcome() {
  const [api, setApi] = useState<{ apiId: string; name: string }>();
  const [issued, setIssued] = useState<{ keyId: string; secret: Secret }>();
  const [isVerified, setVerified] = useState(false);
  return (
    <Page
      title="Your first key"
      summary="Three calls are all that a program needs. Make each of them here, or copy it and make it from yours."
    >
      <ol className="max-w-3xl">
        <Step number={1} title="Create an API" done={api && `${api.name} · ${api.apiId}`} isCurrent={!api}>
          <CreateStep onDone={setApi} />
        </Step>
        <Step number={2} title="Issue a key" done={issued?.keyId} isCurrent={api !== undefined && !issued}>
          {api && <IssueStep apiId={api.apiId} onDone={setIssued} />}
        </Step>
        <Step number={3} title="Verify it" isCurrent={issued !== undefined} done={isVerified ? "Verified" : undefined}>
          {api && issued && (
            <div className="space-y-4">
              <p>
                This is the key. It is shown only now: the service keeps a hash of it. Your user sends it to you, and
                you verify it.
              </p>
              <p className="flex flex-wrap items-center gap-3 rounded-md border border-accent/50 bg-accent-soft p-3">
                <code className="min-w-0 flex-1 font-mono break-all" data-secret>
                  {issued.secret.reveal()}
                </code>
                <CopyButton text={issued.secret.reveal()}>Copy key</CopyButton>
              </p>
              <CodeSnippet operation="keys.verifyKey" input={{ key: issued.secret.reveal() }} />
              <VerifyBox secret={issued.secret.reveal()} onVerified={({ valid }) => setVerified(isVerified || valid)} />
            </div>
          )}
        </Step>
      </ol>
      {isVerified && api && issued && <Next apiId={api.apiId} keyId={issued.keyId} />}
    </Page>
  );
}

function Step({
  number,
  title,
  done,
  isCurrent,
  children,
}: {
  number: number;
  title: string;
  /** What came of it, once it is done. */
  done?: string | undefined;
  isCurrent: boolean;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <li
      aria-labelledby={id}
      aria-current={isCurrent ? "step" : undefined}
      className="grid grid-cols-[2rem_minmax(0,1fr)] gap-x-3 border-t border-line py-5 first:border-t-0"
    >
      <span
        aria-hidden
        className={classes(
          "flex size-7 items-center justify-center rounded-full border text-sm font-medium tabular-nums",
          done
            ? "border-good text-good"
            : isCurrent
              ? "border-accent bg-accent text-on-accent"
              : "border-edge text-quiet",
        )}
      >
        {done ? <CircleCheck className="size-4" /> : number}
      </span>
      <div className="min-w-0">
        <h2 id={id} className={classes("text-lg font-medium", !isCurrent && !done && "text-quiet")}>
          {title}
        </h2>
        {done && <p className="text-quiet">{done}</p>}
        {isCurrent && <div className="mt-3">{children}</div>}
      </div>
    </li>
  );
}

function CreateStep({ onDone }: { onDone: (api: { apiId: string; name: string }) => void }) {
  const create = useCall("apis.createApi");
  const { data: apis = [] } = useQuery(read("apis.listApis", { limit: 100 }));
  const [name, setName] = useState("payments");
  const [chosen, setChosen] = useState(NEW);
  const existing = apis.find(({ apiId }) => apiId === chosen);
  const problem = textProblem(member(apiSchema, "name"), name);
  const submit = () => {
    if (existing) return onDone(existing);
    if (problem === undefined) create.mutate({ name }, { onSuccess: ({ data: { apiId } }) => onDone({ apiId, name }) });
  };
  return (
    <div className="space-y-4">
      <p className="text-quiet">An API is a namespace of keys: one per product or environment.</p>
      {apis.length > 0 && (
        <Select
          label="API"
          value={chosen}
          onChange={setChosen}
          options={[
            { value: NEW, label: "A new one" },
            ...apis.map(({ apiId, name }) => ({ value: apiId, label: `${name} · ${apiId}` })),
          ]}
        />
      )}
      {!existing && (
        <TextField
          label="Name"
          description={member(apiSchema, "name").description}
          value={name}
          onChange={setName}
          onEnter={submit}
          problem={problem}
        />
      )}
      <Actions
        error={create.error}
        operation={existing ? "apis.getApi" : "apis.createApi"}
        input={existing ? { apiId: existing.apiId } : { name }}
      >
        <Button
          kind="primary"
          needs={existing ? undefined : "apis.*.create_api"}
          onPress={submit}
          isPending={create.isPending}
          offBecause={!existing && problem}
        >
          {existing ? "Use this API" : "Create API"}
        </Button>
      </Actions>
    </div>
  );
}

function IssueStep({ apiId, onDone }: { apiId: string; onDone: (issued: { keyId: string; secret: Secret }) => void }) {
  const create = useCall("keys.createKey");
  const [name, setName] = useState("First key");
  const [prefix, setPrefix] = useState("live");
  const problems = {
    name: name === "" ? undefined : textProblem(member(keySchema, "name"), name),
    prefix: prefix === "" ? undefined : textProblem(member(keySchema, "prefix"), prefix),
  };
  const input = { apiId, ...(name !== "" && { name }), ...(prefix !== "" && { prefix }) };
  const problem = problems.name ?? problems.prefix;
  const submit = () =>
    problem === undefined &&
    create.mutate(input, { onSuccess: ({ data }) => onDone({ keyId: data.keyId, secret: data.key }) });
  return (
    <div className="space-y-4">
      <p className="text-quiet">Each of your users gets a key of their own. A prefix says where a key belongs.</p>
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Key name"
          description={member(keySchema, "name").description}
          value={name}
          onChange={setName}
          onEnter={submit}
          problem={problems.name}
        />
        <TextField
          label="Prefix"
          description={member(keySchema, "prefix").description}
          value={prefix}
          onChange={setPrefix}
          onEnter={submit}
          problem={problems.prefix}
          isMono
        />
      </div>
      <Actions error={create.error} operation="keys.createKey" input={input}>
        <Button
          kind="primary"
          needs={`apis.${apiId}.create_key`}
          onPress={submit}
          isPending={create.isPending}
          offBecause={problem}
        >
          Issue key
        </Button>
      </Actions>
    </div>
  );
}

/** The button of a step, and its call in every language. */
function Actions({
  error,
  operation,
  input,
  children,
}: {
  error: Error | null;
  operation: OperationName;
  input: object;
  children: ReactNode;
}) {
  return (
    <>
      {error && <ErrorBox error={error} />}
      <div>{children}</div>
      <div>
        <p className="label mb-1.5">The same from your program</p>
        <CodeSnippet operation={operation} input={input} />
      </div>
    </>
  );
}

/** What to read and do next. */
function Next({ apiId, keyId }: { apiId: string; keyId: string }) {
  return (
    <section aria-labelledby="next" className="appear max-w-3xl border-t border-line py-5">
      <h2 id="next" className="text-lg font-medium">
        That is all. What next?
      </h2>
      <ul className="mt-2 list-disc space-y-1.5 pl-5">
        <li>
          <Link className="link" to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId }}>
            Give the key limits, credits and permissions
          </Link>
        </li>
        <li>
          <Link className="link" to="/apis/$apiId" params={{ apiId }}>
            See all keys of the API
          </Link>
        </li>
        <li>
          <a className="link" href="/docs/protecting-an-api">
            Protect your API: a few lines in your framework
          </a>
        </li>
        <li>
          <a className="link" href="/reference">
            Read about every call in the API reference
          </a>
        </li>
        <li>
          <a className="link" href="/errors">
            See what each error means and how to fix it
          </a>
        </li>
      </ul>
    </section>
  );
}
