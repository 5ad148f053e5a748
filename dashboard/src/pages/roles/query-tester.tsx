import type { Role } from "@latchkey/sdk";
import { CircleCheck, CircleX } from "lucide-react";
import { useState } from "react";
// The parser of the service has no dependencies, so that what is shown here is what a verification decides.
import { parsePermissionQuery, satisfies } from "../../../../engine/src/rules/permission-query.ts";
import { compilePermissions, holds } from "../../../../engine/src/rules/permissions.ts";
import { latchkey } from "../../api/client.ts";
import { snippetsOf } from "../../api/snippets.ts";
import { Button } from "../../ui/button.tsx";
import { TextField } from "../../ui/fields/fields.tsx";
import { CopyButton } from "../../ui/text/copy-button.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { keyName } from "../keys/key-state.tsx";

interface Subject {
  readonly id: string;
  readonly label: string;
  readonly slugs: readonly string[];
}

/** Tries a permission query against every role, and against a key whose permissions the service returns. */
export function QueryTester({
  roles,
  value,
  onChange,
}: {
  roles: readonly Role[];
  value: string;
  onChange: (query: string) => void;
}) {
  const [text, setText] = useState(value);
  const [secret, setSecret] = useState("");
  const [key, setKey] = useState<{ subject?: Subject; error?: unknown; isPending: boolean }>({ isPending: false });
  const query = text.trim() === "" ? undefined : parsePermissionQuery(text);
  const find = async () => {
    setKey({ isPending: true });
    try {
      const { data } = await latchkey.keys.whoami({ key: secret.trim() });
      setKey({
        isPending: false,
        subject: { id: data.keyId, label: `Key ${keyName(data)}`, slugs: data.permissions ?? [] },
      });
      setSecret("");
    } catch (error) {
      setKey({ isPending: false, error });
    }
  };
  const subjects: Subject[] = [
    ...(key.subject ? [key.subject] : []),
    ...roles.map(({ id, name, permissions = [] }) => ({ id, label: name, slugs: permissions.map(({ slug }) => slug) })),
  ];
  return (
    <div className="max-w-3xl space-y-3">
      <TextField
        label="Permission query"
        description="Slugs, AND, OR and parentheses, as keys.verifyKey takes them in permissions."
        value={text}
        onChange={(text) => {
          setText(text);
          onChange(text.trim());
        }}
        problem={query && query.kind !== "query" ? query.message : undefined}
        placeholder="documents.read AND (billing.view OR admin)"
        isMono
      />
      <div className="flex flex-wrap items-end gap-2">
        <div className="min-w-full flex-1 sm:min-w-0">
          <TextField
            label="Also for a key"
            type="password"
            value={secret}
            onChange={setSecret}
            placeholder="Paste a key; it is not verified and not kept"
            onEnter={() => void find()}
            isMono
          />
        </div>
        <Button
          needs="apis.*.read_key"
          offBecause={secret.trim() === "" && "Paste a key first"}
          isPending={key.isPending}
          onPress={() => void find()}
        >
          Add the key
        </Button>
        <CopyButton
          kind="quiet"
          text={() => snippetsOf("keys.verifyKey", { key: "$KEY", permissions: text.trim() }).curl}
        >
          Copy as curl
        </CopyButton>
      </div>
      {key.error !== undefined && <ErrorBox error={key.error} />}
      {query?.kind === "query" && (
        <ul
          aria-label="Who satisfies the query"
          aria-live="polite"
          className="divide-y divide-line border-y border-line"
        >
          {subjects.map(({ id, label, slugs }) => {
            const permissions = compilePermissions(slugs);
            const isMet = satisfies(query, permissions);
            const words = query.tokens.filter((token) => !["(", ")", "|"].includes(token));
            return (
              <li key={id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2">
                <span className={`inline-flex w-40 items-center gap-2 ${isMet ? "text-good" : "text-bad"}`}>
                  {isMet ? (
                    <CircleCheck aria-label="Satisfied:" className="size-4 shrink-0" />
                  ) : (
                    <CircleX aria-label="Not satisfied:" className="size-4 shrink-0" />
                  )}
                  <span className="truncate font-medium text-ink">{label}</span>
                </span>
                <span className="flex flex-wrap gap-x-3 text-xs">
                  {[...new Set(words)].map((slug) => {
                    const isHeld = holds(permissions, slug);
                    return (
                      <span key={slug} className={isHeld ? "text-good" : "text-quiet"}>
                        {isHeld ? "✓" : "✗"} <span className="font-mono">{slug}</span>
                        {isHeld && !slugs.includes(slug) && " by a wildcard"}
                      </span>
                    );
                  })}
                </span>
              </li>
            );
          })}
        </ul>
      )}
    </div>
  );
}
