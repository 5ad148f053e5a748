/** Bytes of a head with its blank line. Node rejects heads from 16 KiB of content. */
const HEAD_BYTES_MAX = 16 * 1024;
/** Lines of headers. Node ignores headers beyond 2,000. */
const HEADERS_MAX = 100;

const REQUEST_LINE_START = "POST ";
const REQUEST_LINE_END = " HTTP/1.1";
/** The blank line. */
export const HEAD_END = "\r\n\r\n";

/** One header: a token of letters, digits and `-`, at most one space, and visible ASCII with spaces between. */
const HEADER = /^([A-Za-z0-9-]+): ?([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)$/;
/** A number that has one spelling. */
const LENGTH = /^(?:0|[1-9]\d{0,4})$/;

/** Headers that change how a request is read or answered. Only the ordinary server handles them. */
const FOREIGN = new Set([
  "transfer-encoding",
  "expect",
  "upgrade",
  "content-encoding",
  "proxy-connection",
  "http2-settings",
  "trailer",
]);

/** The head of a plain request. */
export interface PlainHead {
  path: string;
  /** Bytes of the head with its blank line. */
  headBytes: number;
  bodyBytes: number;
  authorization: string | undefined;
  contentType: string | undefined;
  idempotencyKey: string | undefined;
  forwardedFor: string | undefined;
}

/**
 * Reads the head of a request that starts at `start`; null unless it is whole and of the one form that the fast lane
 * answers: `POST`, HTTP/1.1, one Host, one Content-Length of digits, no header of `FOREIGN`, and no byte that HTTP
 * parsers disagree about. Every head that this function accepts, Node's parser reads in the same way.
 */
export function readPlainHead(chunk: Buffer, start: number): PlainHead | null {
  const end = chunk.indexOf(HEAD_END, start, "latin1");
  if (end === -1 || end - start > HEAD_BYTES_MAX - HEAD_END.length) return null;
  const lines = chunk.toString("latin1", start, end).split("\r\n");
  if (lines.length - 1 > HEADERS_MAX) return null;
  const path = pathIn(lines[0]!);
  if (path === undefined) return null;

  const fields = new Fields();
  for (let i = 1; i < lines.length; i++) if (!fields.add(lines[i]!)) return null;
  const { host, contentLength, authorization, contentType, idempotencyKey, forwardedFor } = fields;
  if (host === undefined || contentLength === undefined || !LENGTH.test(contentLength)) return null;
  return {
    path,
    headBytes: end - start + HEAD_END.length,
    bodyBytes: Number(contentLength),
    authorization,
    contentType,
    idempotencyKey,
    forwardedFor,
  };
}

/** The headers that the lane uses, each at most once. */
class Fields {
  host: string | undefined;
  contentLength: string | undefined;
  authorization: string | undefined;
  contentType: string | undefined;
  idempotencyKey: string | undefined;
  forwardedFor: string | undefined;

  /** False if the line is not plain. */
  add(line: string): boolean {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined) return false;
    const field = name.toLowerCase();
    if (field === "connection") return value?.toLowerCase() === "keep-alive";
    const member = MEMBERS.get(field);
    if (member === undefined) return !FOREIGN.has(field);
    if (this[member] !== undefined || value === undefined) return false;
    this[member] = value;
    return true;
  }
}

const MEMBERS: ReadonlyMap<string, keyof Omit<Fields, "add">> = new Map([
  ["host", "host"],
  ["content-length", "contentLength"],
  ["authorization", "authorization"],
  ["content-type", "contentType"],
  ["idempotency-key", "idempotencyKey"],
  ["x-forwarded-for", "forwardedFor"],
] as const);

function pathIn(line: string): string | undefined {
  if (!line.startsWith(REQUEST_LINE_START) || !line.endsWith(REQUEST_LINE_END)) return undefined;
  return line.slice(REQUEST_LINE_START.length, -REQUEST_LINE_END.length);
}
