import type { VerifyKeyOutput } from "@latchkey/sdk";
import { CircleCheck, CircleDashed, CircleX } from "lucide-react";
import { useId, useState } from "react";
import { type Input, isProblem, latchkey } from "../../api/client.ts";
import { exactNumber, relativeTime } from "../../api/format.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button } from "../../ui/button.tsx";
import { classes } from "../../ui/classes.ts";
import { Code } from "../../ui/code-snippet.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Switch, TextField } from "../../ui/fields.tsx";
import { Fold } from "../../ui/fold.tsx";
import { type Check, checksOf, meaningOf } from "./checks.ts";

interface Outcome {
  readonly data: VerifyKeyOutput;
  readonly input: Input<"keys.verifyKey">;
  readonly milliseconds: number;
  readonly at: number;
}

/** Verifies a key: the code in large, what was checked, what remains, and how long it took. */
export function VerifyBox({
  apiId,
  secret = "",
  onVerified,
}: {
  /** Only keys of this API. */
  apiId?: string;
  /** The key that the box begins with. */
  secret?: string;
  onVerified?: (data: VerifyKeyOutput) => void;
}) {
  const [key, setKey] = useState(secret);
  const [permissions, setPermissions] = useState("");
  const [isCharged, setCharged] = useState(false);
  const [state, setState] = useState<{ isPending: boolean; outcome?: Outcome; error?: unknown }>({ isPending: false });
  const heading = useId();
  const input: Input<"keys.verifyKey"> = {
    key: key.trim(),
    ...(apiId !== undefined && { apiId }),
    ...(permissions.trim() !== "" && { permissions: permissions.trim() }),
    ...(!isCharged && { credits: { cost: 0 } }),
  };
  const verify = async () => {
    if (key.trim() === "") return;
    setState({ ...state, isPending: true });
    try {
      const [data, milliseconds] = await verifyOnce(input, isCharged);
      setState({ isPending: false, outcome: { data, input, milliseconds, at: Date.now() } });
      onVerified?.(data);
    } catch (error) {
      setState({ isPending: false, error });
    }
  };
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
          placeholder="Type or paste a key"
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
          description="Off: credits and stored limits are checked, not charged."
          value={isCharged}
          onChange={setCharged}
        />
        <Button
          kind="primary"
          needs={`apis.${apiId ?? "some"}.verify_key`}
          onPress={() => void verify()}
          isPending={state.isPending}
          offBecause={key.trim() === "" && "Enter a key first"}
        >
          Verify
        </Button>
      </div>
      {error !== undefined && <ErrorBox error={error} />}
      {outcome && <Answer outcome={outcome} />}
    </section>
  );
}

/** Without a charge, the limits of the key are named with a cost of 0: they are learned from a first answer. */
async function verifyOnce(input: Input<"keys.verifyKey">, isCharged: boolean): Promise<[VerifyKeyOutput, number]> {
  if (!isCharged) {
    try {
      const { data: key } = await latchkey.keys.whoami({ key: input.key });
      const own = [...(key.ratelimits ?? []), ...(key.identity?.ratelimits ?? [])].filter(({ autoApply }) => autoApply);
      const names = [...new Set(own.map(({ name }) => name))];
      if (names.length > 0) input = { ...input, ratelimits: names.map((name) => ({ name, cost: 0 })) };
    } catch (error) {
      // Verifying says why there is no such key, and may be allowed where reading is not.
      if (!isProblem(error, "data/key_not_found") && !isProblem(error, "authorization/insufficient_permissions"))
        throw error;
    }
  }
  const startedAt = performance.now();
  const { data } = await latchkey.keys.verifyKey(input);
  return [data, performance.now() - startedAt];
}

function Answer({ outcome: { data, input, milliseconds, at } }: { outcome: Outcome }) {
  const { code, valid, credits, ratelimits = [] } = data;
  return (
    <div role="status" className="appear space-y-3 border-t border-line pt-3">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <p className={classes("font-mono text-xl font-semibold", valid ? "text-good" : "text-bad")}>{code}</p>
        <p className="text-xs text-quiet tabular-nums">
          {milliseconds.toFixed(1)} ms from this browser · {relativeTime(at)}
        </p>
      </div>
      <p>{meaningOf(data, input)}</p>
      <ol className="space-y-1">
        {checksOf(data, input).map((check) => (
          <CheckLine key={check.label} check={check} />
        ))}
      </ol>
      {(credits !== undefined || ratelimits.length > 0) && (
        <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
          {credits !== undefined && (
            <>
              <dt className="text-quiet">Credits</dt>
              <dd className="tabular-nums">{exactNumber(credits)} remain</dd>
            </>
          )}
          {ratelimits.map(({ id, name, limit, remaining, reset }) => (
            <div key={id} className="contents">
              <dt className="text-quiet">{name}</dt>
              <dd className="tabular-nums">
                {exactNumber(remaining)} of {exactNumber(limit)} remain, resets {relativeTime(reset)}
              </dd>
            </div>
          ))}
        </dl>
      )}
      <Fold title="Headers that a proxy gets from /auth/verify">
        <Code text={proxyHeaders(data)} label="Copy the headers" />
      </Fold>
    </div>
  );
}

/** The headers that `/auth/verify` answers with, besides those of the limits. */
function proxyHeaders({ code, valid, keyId, identity, credits }: VerifyKeyOutput): string {
  if (!valid) return `X-Latchkey-Code: ${code}`;
  return [
    `X-Latchkey-Code: ${code}`,
    `X-Latchkey-Key-Id: ${keyId}`,
    `X-Latchkey-Owner: ${identity?.externalId ?? ""}`,
    `X-Latchkey-Remaining: ${credits ?? ""}`,
  ].join("\n");
}

const icons = {
  passed: <CircleCheck aria-hidden className="mt-0.5 size-4 shrink-0 text-good" />,
  decided: <CircleX aria-hidden className="mt-0.5 size-4 shrink-0 text-bad" />,
  "not reached": <CircleDashed aria-hidden className="mt-0.5 size-4 shrink-0 text-quiet" />,
};

function CheckLine({ check: { label, state, detail } }: { check: Check }) {
  return (
    <li className="flex items-start gap-2">
      {icons[state]}
      <span className={state === "not reached" ? "text-quiet" : undefined}>
        {label}
        <span className="text-quiet">: {detail ?? state}</span>
      </span>
    </li>
  );
}
