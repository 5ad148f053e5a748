import type { Key } from "@latchkey/sdk";
import { useState } from "react";
import type { OperationName } from "../../api/client.ts";
import { Select } from "../../ui/fields/select.tsx";
import { CodeSnippet } from "../../ui/text/code-snippet.tsx";

/** Calls about this key, with its values. */
export function KeyCode({ of: { keyId, apiId, permissions, enabled } }: { of: Key }) {
  const calls: Record<string, { label: string; operation: OperationName; input: object }> = {
    verify: {
      label: "Verify it",
      operation: "keys.verifyKey",
      input: { key: "…", apiId, ...(permissions?.[0] !== undefined && { permissions: permissions[0] }) },
    },
    get: { label: "Get it", operation: "keys.getKey", input: { keyId } },
    toggle: {
      label: enabled ? "Disable it" : "Enable it",
      operation: "keys.updateKey",
      input: { keyId, enabled: !enabled },
    },
    rotate: { label: "Rotate it", operation: "keys.rerollKey", input: { keyId, expiration: 86_400_000 } },
    delete: { label: "Delete it", operation: "keys.deleteKey", input: { keyId } },
  };
  const [name, setName] = useState("verify");
  const { operation, input } = calls[name]!;
  return (
    <div className="space-y-3">
      <div className="max-w-xs">
        <Select
          label="What to do"
          value={name}
          onChange={setName}
          options={Object.entries(calls).map(([value, { label }]) => ({ value, label }))}
        />
      </div>
      <CodeSnippet operation={operation} input={input} />
    </div>
  );
}
