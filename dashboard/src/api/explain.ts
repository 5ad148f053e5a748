import { LatchkeyError } from "@latchkey/sdk";

/** An error as a person reads it. */
export interface Explanation {
  readonly title: string;
  /** What is wrong and how to fix it. */
  readonly detail: string;
  /** Each error in the input. */
  readonly errors: readonly { readonly field: string; readonly message: string; readonly fix?: string | undefined }[];
  readonly requestId: string | undefined;
  /** The page of the service that explains the error. */
  readonly page: string | undefined;
}

/** Errors that the client makes. */
const own: Record<string, string> = {
  network_error: "No connection",
  timeout: "No answer in time",
  circuit_open: "The service does not answer",
  aborted: "The call was ended",
  invalid_answer: "The answer is not one of the service",
};

/** Titles of errors whose type says something else to who reads the page. */
const titles: Record<string, string> = {
  "authentication/key_not_found": "Signing in failed",
};

/** Explains what was thrown. */
export function explain(error: unknown): Explanation {
  if (!(error instanceof LatchkeyError)) {
    const detail = error instanceof Error ? error.message : String(error);
    return { title: "The dashboard made an error", detail, errors: [], requestId: undefined, page: undefined };
  }
  const { type, detail, requestId } = error;
  return {
    title: own[type] ?? titles[type] ?? titleOf(type),
    detail,
    errors: error.errors.map(({ location, message, fix }) => ({ field: fieldOf(location), message, fix })),
    requestId,
    page: own[type] === undefined ? `/errors/${type}` : undefined,
  };
}

/** `data/key_not_found` as `Key not found`. */
function titleOf(type: string): string {
  const words = type
    .replace(/^.*\//, "")
    .replaceAll("_", " ")
    .replaceAll(/\bapi\b/g, "API");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The name of the member that a location of a schema is about: `/properties/name/maxLength` is `name`. */
function fieldOf(location: string): string {
  const names = [...location.matchAll(/\/properties\/([^/]+)/g)].map(([, name]) => name);
  return names.join(".") || location;
}
