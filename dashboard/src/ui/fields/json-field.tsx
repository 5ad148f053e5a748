import { TextField } from "./fields.tsx";

/** The object that a text is in JSON; undefined for an empty text. */
export function parseObject(text: string): { value?: Record<string, unknown>; problem?: string } {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return { value: value as Record<string, unknown> };
    }
    return { problem: "Enter an object: { … }" };
  } catch (error) {
    return { problem: `This is no JSON: ${error instanceof Error ? error.message : error}` };
  }
}

/** An object as JSON. Empty: none. */
export function JsonField({
  label,
  description,
  value,
  onChange,
}: {
  label: string;
  description?: string | undefined;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <TextField
      label={label}
      description={description}
      value={value}
      onChange={onChange}
      problem={parseObject(value).problem}
      lines={4}
      isMono
      placeholder='{ "plan": "pro" }'
    />
  );
}
