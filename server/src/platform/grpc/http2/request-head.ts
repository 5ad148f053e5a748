import type { HeaderField } from "./hpack.ts";

/** What calls use of the header fields of a request. */
export interface RequestHead {
  method: string;
  path: string;
  contentType: string | undefined;
  authorization: string | undefined;
  /** `grpc-timeout`. */
  timeout: string | undefined;
  contentLength: number | undefined;
}

/** They belong to a connection of HTTP/1 (RFC 9113, section 8.2.2). */
const ofConnections = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);

const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const SCHEME = /^[A-Za-z][A-Za-z0-9+\-.]*$/;
const PATH = /^\/[\x21-\x7e]*$/;
const AUTHORITY = /^[A-Za-z0-9\-._~%!$&'()*+,;=:@[\]]*$/;
const LENGTH = /^\d{1,15}$/;

/** The head of a request; undefined: it is malformed (RFC 9113, sections 8.2 and 8.3). Of a repeated field the first one counts. */
export function readRequestHead(fields: readonly HeaderField[]): RequestHead | undefined {
  const pseudo = new Map<string, string>();
  const regular = new Map<string, string>();
  for (const field of fields) {
    const { name, value } = field;
    if (!name.startsWith(":")) {
      if (!isAllowed(field)) return undefined;
      if (name === "content-length" && (regular.get(name) ?? value) !== value) return undefined;
      if (!regular.has(name)) regular.set(name, value);
    } else if (!field.isValid || regular.size > 0 || pseudo.has(name)) return undefined;
    else pseudo.set(name, value);
  }
  const [method = "", scheme = "", path = ""] = [":method", ":scheme", ":path"].map((name) => pseudo.get(name));
  const authority = pseudo.get(":authority") ?? regular.get("host");
  const length = regular.get("content-length");
  const isWhole = METHOD.test(method) && SCHEME.test(scheme) && PATH.test(path) && authority !== undefined;
  if (!isWhole || pseudo.size !== (pseudo.has(":authority") ? 4 : 3) || !AUTHORITY.test(authority)) return undefined;
  if (length !== undefined && !LENGTH.test(length)) return undefined;
  return {
    method,
    path,
    contentType: regular.get("content-type"),
    authorization: regular.get("authorization"),
    timeout: regular.get("grpc-timeout"),
    contentLength: length === undefined ? undefined : Number(length),
  };
}

/** Whether these may follow the content of a request. */
export function areTrailers(fields: readonly HeaderField[]): boolean {
  return fields.every((field) => !field.name.startsWith(":") && isAllowed(field));
}

function isAllowed({ name, value, isValid }: HeaderField): boolean {
  return isValid && !ofConnections.has(name) && (name !== "te" || value === "trailers");
}
