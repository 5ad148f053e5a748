import { CircleCheck, CircleDashed, CircleX } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import { type Data, type Input, latchkey } from "../../api/client.ts";
import { exactNumber, relativeTime } from "../../api/format.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button } from "../../ui/button.tsx";
import { classes } from "../../ui/classes.ts";
import { Switch, TextField } from "../../ui/fields/fields.tsx";
import { Fold } from "../../ui/fold.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { CopyButton } from "../../ui/text/copy-button.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { CountedLimits } from "./counted-limits.tsx";
import { explain, HOLD } from "./explain.ts";

type Explanation = Data<"keys.explainVerification">;
type Step = Explanation["steps"][number];

interface Outcome {
  readonly explained: Explanation;
  /** Set if the key was verified, and so charged. */
  readonly verified: boolean;
  readonly milliseconds: number;
}

/** Explains a verification, or makes one: the code in large, every step, and the counters. */
export function VerifyBox({
  apiId,
  keyId,
  secret = "",
  isAtOnce = false,
  onVerified,
}: {
  /** Only keys of this API. */
  apiId?: string;
  /** The key to explain while no string is entered. */
  keyId?: string;
  /** The key that the box begins with. */
  secret?: string;
  /** Explains it without being asked. */
  isAtOnce?: boolean;
  onVerified?: (explained: { readonly valid: boolean }) => void;
}) {
  const [key, setKey] = useState(secret);
  const [permissions, setPermissions] = useState("");
  const [isCharged, setCharged] = useState(false);
  const [state, setState] = useState<{ isPending: boolean; outcome?: Outcome; error?: unknown }>({ isPending: false });
  const heading = useId();
  const text = key.trim();
  const isMissing = text === "" && (keyId === undefined || isCharged);
  const query = permissions.trim() === "" ? {} : { permissions: permissions.trim() };
  const input: Input<"keys.explainVerification"> =
    text === "" ? { keyId: keyId!, ...query } : { key: text, ...(apiId !== undefined && { apiId }), ...query };
  const verify = async () => {
    if (isMissing) return;
    setState({ ...state, isPending: true });
    try {
      const outcome = await explainOnce(input, isCharged);
      setState({ isPending: false, outcome });
      onVerified?.(outcome.explained);
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
  const hasBegun = useRef(!isAtOnce);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what the box begins with is verified once.
  useEffect(() => {
    if (hasBegun.current) return;
    hasBegun.current = true;
    void verify();
  }, []);
  const { outcome, error } = state;
  return (
    <section aria-labelledby={heading} className="space-y-3 rounded-md border border-line p-4">
      <div className="flex items-center justify-between gap-2">
        <h3 id={heading} className="font-medium">
          Verify a key
        </h3>
        {/* The call has no key: it would be in the history of a shell. */}
        <CopyButton label="Copy as curl" text={() => snippetsOf("keys.verifyKey", { ...input, key: "$KEY" }).curl} />
      </div>
      <div className="grid items-start gap-3 sm:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <TextField
          label="Key"
          type="password"
          value={key}
          onChange={setKey}
          onEnter={() => void verify()}
          placeholder={keyId === undefined ? "Type or paste a key" : "This key, or paste another"}
          isMono
        />
        <TextField
          label="Permission query"
          value={permissions}
          onChange={setPermissions}
          onEnter={() => void verify()}
          placeholder="documents.read AND billing.view"
          isMono
        />
      </div>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <Switch
          label="Charge limits and credits"
          description="Off: the verification is explained, and nothing is charged."
          value={isCharged}
          onChange={setCharged}
        />
        <Button
          kind="primary"
          needs={`apis.${apiId ?? "some"}.${isCharged ? "verify_key" : "read_key"}`}
          onPress={() => void verify()}
          isPending={state.isPending}
          offBecause={isMissing && "Enter a key first"}
        >
          Verify
        </Button>
      </div>
      {error !== undefined && <ErrorBox error={error} />}
      {outcome && <Answer outcome={outcome} />}
    </section>
  );
}

/** A verification that is charged is explained before it, so that the steps are those of its decision. */
async function explainOnce(input: Input<"keys.explainVerification">, isCharged: boolean): Promise<Outcome> {
  const startedAt = performance.now();
  const explained = await explain(input);
  if (!isCharged) return { explained, verified: false, milliseconds: performance.now() - startedAt };
  const { keyId: _, key = "", ...rest } = input;
  const verifiedAt = performance.now();
  await latchkey.keys.verifyKey({ key, ...rest, ...(explained.concurrency && { hold: HOLD }) });
  return { explained, verified: true, milliseconds: performance.now() - verifiedAt };
}

function Answer({ outcome: { explained, verified, milliseconds } }: { outcome: Outcome }) {
  const { code, valid, at, steps, credits, ratelimits = [] } = explained;
  const decided = steps.find(({ result }) => result === "decided");
  return (
    <div role="status" className="appear space-y-3 border-t border-line pt-3">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <p className={classes("font-mono text-xl font-semibold", valid ? "text-good" : "text-bad")}>{code}</p>
        <p className="text-xs text-quiet tabular-nums">
          {milliseconds.toFixed(1)} ms from this browser · {relativeTime(at)}
        </p>
      </div>
      <p>
        {decided?.detail ?? "Every check passed: let the request through."}
        {verified && " It was charged; the counters are those before it."}
      </p>
      <ol className="space-y-1">
        {steps.map((step) => (
          <StepLine key={step.step} of={step} />
        ))}
      </ol>
      {explained.permissions?.query && <QueryParts of={explained.permissions.query} />}
      {credits && (
        <p className="tabular-nums">
          <span className="text-quiet">Credits</span> {exactNumber(credits.remaining)} remain
        </p>
      )}
      <CountedLimits of={ratelimits} />
      <Fold title="Headers that a proxy gets from /auth/verify">
        <Code text={proxyHeaders(explained)} label="Copy the headers" />
      </Fold>
    </div>
  );
}

/** The permissions that the query names, and what grants each. */
function QueryParts({ of: { slugs } }: { of: NonNullable<NonNullable<Explanation["permissions"]>["query"]> }) {
  return (
    <ul className="space-y-1">
      {slugs.map(({ slug, grantedBy }) => (
        <li key={slug} className="flex flex-wrap items-baseline gap-x-3">
          <code className="font-mono text-xs">{slug}</code>
          <span className={classes("text-xs", grantedBy === undefined ? "text-bad" : "text-quiet")}>
            {grantedBy === undefined ? "not granted" : grantedBy === slug ? "granted" : `granted by ${grantedBy}`}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The headers that `/auth/verify` answers with, besides those of the limits. */
function proxyHeaders({ code, valid, key, credits }: Explanation): string {
  if (!valid) return `X-Latchkey-Code: ${code}`;
  return [
    `X-Latchkey-Code: ${code}`,
    `X-Latchkey-Key-Id: ${key?.keyId}`,
    `X-Latchkey-Owner: ${key?.identity?.externalId ?? ""}`,
    `X-Latchkey-Remaining: ${credits ? credits.remaining - credits.cost : ""}`,
  ].join("\n");
}

const labels: Record<Step["step"], string> = {
  lookup: "The key exists",
  deletion: "The key is not deleted",
  api: "The API",
  rootKey: "The root key",
  workspace: "The workspace is enabled",
  enabled: "The key is enabled",
  expiry: "The key has not expired",
  address: "The address is allowed",
  permissions: "Permissions",
  concurrency: "Calls at once",
  limits: "Limits",
  credits: "Credits",
};

const icons = {
  passed: <CircleCheck aria-hidden className="mt-0.5 size-4 shrink-0 text-good" />,
  decided: <CircleX aria-hidden className="mt-0.5 size-4 shrink-0 text-bad" />,
  notReached: <CircleDashed aria-hidden className="mt-0.5 size-4 shrink-0 text-quiet" />,
};

function StepLine({ of: { step, result, detail } }: { of: Step }) {
  return (
    <li className="flex items-start gap-2">
      {icons[result]}
      <span className={result === "notReached" ? "text-quiet" : undefined}>
        {labels[step]}
        <span className="text-quiet">
          : {result === "notReached" && "not reached. "}
          {detail}
        </span>
      </span>
    </li>
  );
}
