/** Byte streams that a peer may send: valid requests, and requests that HTTP parsers read in different ways. */
import { alphanumeric, type Random } from "../../../engine/src/random/random.ts";

/** What a peer sends on one connection. */
export interface PeerStream {
  peer: string;
  chunks: readonly Buffer[];
  /** When each chunk is sent: after the answers to the one before, or all of them in one turn of the event loop. */
  pace: "after answers" | "at once";
  /** When the peer ends its side. */
  ends: "with the last chunk" | "later" | "never";
}

/** A request as text in Latin-1, before it is changed. */
interface Parts {
  line: string;
  headers: string[];
  body: string;
}

const PACES = ["after answers", "after answers", "at once"] as const;
/** One of them is a trusted proxy. Heads of one peer are repeated by the others. */
const PEERS = ["192.0.2.7", "198.51.100.1", "2001:db8::1"];
const ENDS = ["with the last chunk", "later", "never", "never"] as const;
const PATHS = ["/v2/keys.verifyKey", "/v2/ratelimits.limit", "/v2/ratelimit.limit"];
/** Requests that a peer repeats in any order: more than the lane keeps heads of. */
const REPEATED = 3;
const BODIES = [
  '{"key":"prod_1"}',
  "{}",
  "",
  '{"slow":true}',
  '{"key":"\xc3\xa9"}',
  "[1,2]",
  '{"key":"\xff"}',
  '{"large":true}',
];

/** Draws a stream. The same state of `random` gives the same stream. */
export function drawStream(random: Random): PeerStream {
  if (chance(random, 0.2)) return drawPipeline(random);
  if (chance(random, 0.2)) return drawRepetitions(random);
  const count = 1 + below(random, 4);
  let text = "";
  for (let i = 0; i < count; i++) text += drawRequest(random);
  if (chance(random, 0.15)) text = mutateBytes(random, text);
  if (chance(random, 0.1)) text = text.slice(0, below(random, text.length + 1));
  return stream(random, split(random, Buffer.from(text, "latin1")));
}

/** Plain calls, then what only the ordinary server answers, in few packets: their answers must come first and in order. */
function drawPipeline(random: Random): PeerStream {
  const count = 1 + below(random, 5);
  let text = "";
  for (let i = 0; i < count; i++) text += chance(random, 0.5) ? unchanged(random) : pick(random, FOREIGN)(random);
  return stream(random, split(random, Buffer.from(text, "latin1")));
}

/** A few requests in any order, as by a client that makes the same calls again and again. */
function drawRepetitions(random: Random): PeerStream {
  const requests = Array.from({ length: REPEATED }, () => unchanged(random));
  const text = Array.from({ length: 2 + below(random, 8) }, () => pick(random, requests)).join("");
  return stream(random, split(random, Buffer.from(text, "latin1")));
}

function stream(random: Random, chunks: readonly Buffer[]): PeerStream {
  return { peer: pick(random, PEERS), chunks, pace: pick(random, PACES), ends: pick(random, ENDS) };
}

const HOST = "Host: keys.example\r\n";

/** Requests that leave the lane, and input that is none. */
const FOREIGN: readonly ((random: Random) => string)[] = [
  () => `CONNECT keys.example:443 HTTP/1.1\r\n${HOST}\r\n`,
  () => "CONNECT keys.example:443 HTTP/1.1\r\n\r\n",
  () => `CONNECT keys.example:443 HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nhello`,
  () => `GET /v2/keys.verifyKey HTTP/1.1\r\n${HOST}\r\n`,
  () => `PUT /v2/keys.verifyKey HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\n{}`,
  () => `GET /nothing HTTP/1.1\r\n${HOST}\r\n`,
  () => `GET /%6detrics HTTP/1.1\r\n${HOST}\r\n`,
  () => `GET /v2/liveness HTTP/1.1\r\n${HOST}\r\n`,
  () => `GET /v2/liveness HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  () => "garbage\r\n\r\n",
  () => "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  (random) =>
    `POST /v2/keys.verifyKey HTTP/1.1\r\n${HOST}Content-Length: ${below(random, 2) === 0 ? 70_000 : 9_999_999}\r\n\r\n`,
  () => `POST /v2/keys.verifyKey HTTP/1.1\r\n${HOST}Content-Length: 70000\r\n\r\n${"z".repeat(70_000)}`,
  () => `POST /v2/apis.createApi HTTP/1.1\r\n${HOST}Content-Length: 2000000\r\n\r\n`,
  () => `POST /v2/keys.verifyKey HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
];

function drawRequest(random: Random): string {
  const parts = plain(random);
  const changes = chance(random, 0.45) ? 1 + below(random, 2) : 0;
  for (let i = 0; i < changes; i++) pick(random, CHANGES)(parts, random);
  return textOf(parts);
}

function unchanged(random: Random): string {
  return textOf(plain(random));
}

function textOf({ line, headers, body }: Parts): string {
  return `${line}\r\n${headers.map((header) => `${header}\r\n`).join("")}\r\n${body}`;
}

function plain(random: Random): Parts {
  const body = pick(random, BODIES);
  const headers = ["Host: keys.example", `Content-Length: ${body.length}`];
  const add = (share: number, header: string) => chance(random, share) && headers.push(header);
  add(0.9, "Content-Type: application/json");
  add(0.5, `Authorization: Bearer root_${below(random, 3)}`);
  add(0.2, `Idempotency-Key: ${alphanumeric(random, 4)}`);
  add(0.2, "X-Forwarded-For: 203.0.113.9, 198.51.100.4");
  add(0.2, "User-Agent: a client/1.0 (with; marks)");
  add(0.2, pick(random, ["Connection: keep-alive", "connection: Keep-Alive"]));
  add(0.1, "Accept:");
  add(0.1, "Cookie: a=b; c=d");
  for (let i = headers.length - 1; i > 0; i--) {
    const j = below(random, i + 1);
    [headers[i], headers[j]] = [headers[j]!, headers[i]!];
  }
  return { line: `POST ${pick(random, PATHS)} HTTP/1.1`, headers, body };
}

type Change = (parts: Parts, random: Random) => void;

/** Replaces the Content-Length by these. */
const LENGTHS: ((length: number) => string[])[] = [
  (length) => [`Content-Length: +${length}`],
  (length) => [`Content-Length: -${length}`],
  (length) => [`Content-Length: 0x${length.toString(16)}`],
  (length) => [`Content-Length: ${length}, ${length}`],
  (length) => [`Content-Length: 0${length}`],
  (length) => [`Content-Length: ${length} `],
  (length) => [`Content-Length:  ${length}`],
  (length) => [`Content-Length:${length}`],
  (length) => [`Content-Length:\t${length}`],
  (length) => [`Content-Length : ${length}`],
  (length) => [`Content-Length: ${length}.0`],
  (length) => [`Content-Length: ${length}e0`],
  (length) => [`Content-Length: 1${"0".repeat(20)}${length}`],
  (length) => [`Content-Length: 99999${length}`],
  (length) => [`Content-Length: ${length} 1`],
  (length) => [`Content-Length: ${length}`, `Content-Length: ${length}`],
  (length) => [`Content-Length: ${length}`, `Content-Length: ${length + 1}`],
  (length) => [`Content-Length: ${length + 7}`],
  (length) => [`Content-Length: ${Math.max(0, length - 3)}`],
  () => ["Content-Length:"],
  () => ["Content-Length: zero"],
  () => [],
];

/** Added to a request, or put in the place of a header. */
const HEADERS = [
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding:chunked",
  "Transfer-Encoding : chunked",
  "Transfer-Encoding: xchunked",
  "transfer-encoding: gzip, chunked",
  "Transfer_Encoding: chunked",
  "Connection: close",
  "Connection: keep-alive, close",
  "Connection: close, keep-alive",
  "Connection: upgrade",
  "Connection: content-length",
  "Connection:",
  "Proxy-Connection: close",
  "Keep-Alive: timeout=1",
  "Upgrade: h2c",
  "Expect: 100-continue",
  "Expect: something",
  "Content-Encoding: gzip",
  "Content-Encoding: identity",
  "Content-Encoding:",
  "Trailer: x",
  "TE: trailers",
  "HTTP2-Settings: AAMAAABk",
  "Host: other.example",
  "Host:",
  "Authorization: Bearer root_other",
  "Authorization:",
  "Authorization:  Bearer root_two_spaces",
  "Authorization: Bearer root_trailing \t",
  "Content-Type: text/plain",
  "Content-Type: application/json; charset=utf-8",
  "Idempotency-Key: second",
  "X-Forwarded-For: 192.0.2.200",
  "X-Forwarded-For: not an address",
  "Cookie: second=1",
  "constructor: x",
  "__proto__: x",
  "hasOwnProperty: x",
  " leading: x",
  "\tfolded",
  " folded",
  "no colon",
  ": no name",
  "spa ce: x",
  "b@d: x",
  "un_der: x",
  "odd!#$%&'*+.^`|~: x",
  "x: tab\tinside",
  "x: high \xff byte",
  "x: nul \0 byte",
  "x: delete \x7f byte",
  "x: bell \x07 byte",
  "x: bare \r return",
  "x: bare \n feed",
  "x: feed at the end\n",
  "x: return at the end\r",
  `x: ${"long ".repeat(500)}`,
];

const LINES = [
  "post /v2/keys.verifyKey HTTP/1.1",
  "Post /v2/keys.verifyKey HTTP/1.1",
  "GET /v2/keys.verifyKey HTTP/1.1",
  "HEAD /v2/keys.verifyKey HTTP/1.1",
  "PUT /v2/keys.verifyKey HTTP/1.1",
  "POST /v2/keys.verifyKey HTTP/1.0",
  "POST /v2/keys.verifyKey HTTP/1.2",
  "POST /v2/keys.verifyKey HTTP/2.0",
  "POST /v2/keys.verifyKey http/1.1",
  "POST /v2/keys.verifyKey  HTTP/1.1",
  "POST  /v2/keys.verifyKey HTTP/1.1",
  "POST /v2/keys.verifyKey HTTP/1.1 ",
  " POST /v2/keys.verifyKey HTTP/1.1",
  "POST\t/v2/keys.verifyKey\tHTTP/1.1",
  "POST /v2/keys.verifyKey",
  "POST /v2/keys.verifyKey?x=1 HTTP/1.1",
  "POST /v2/keys.verifyKey/ HTTP/1.1",
  "POST /v2/keys.verify%4Bey HTTP/1.1",
  "POST //v2/keys.verifyKey HTTP/1.1",
  "POST http://keys.example/v2/keys.verifyKey HTTP/1.1",
  "POST keys.verifyKey HTTP/1.1",
  "POST * HTTP/1.1",
  "POST /v2/unknown HTTP/1.1",
  "OPTIONS * HTTP/1.1",
  "PRI * HTTP/2.0",
  "\r\nPOST /v2/keys.verifyKey HTTP/1.1",
  "\nPOST /v2/keys.verifyKey HTTP/1.1",
  "\0POST /v2/keys.verifyKey HTTP/1.1",
  `POST /v2/keys.verifyKey${"x".repeat(3_000)} HTTP/1.1`,
];

const CHUNKED = [
  "5\r\nhello\r\n0\r\n\r\n",
  "0\r\n\r\n",
  "5;x=y\r\nhello\r\n0\r\nT: x\r\n\r\n",
  "5\nhello\n0\n\n",
  "FFFFFFFFF\r\n",
];

const CHANGES: readonly Change[] = [
  (parts, random) => {
    const at = parts.headers.findIndex((header) => /^content-length/i.test(header));
    if (at !== -1) parts.headers.splice(at, 1, ...pick(random, LENGTHS)(parts.body.length));
  },
  (parts, random) => parts.headers.splice(below(random, parts.headers.length + 1), 0, pick(random, HEADERS)),
  (parts, random) => parts.headers.splice(below(random, parts.headers.length), 1, pick(random, HEADERS)),
  (parts, random) => parts.headers.splice(below(random, parts.headers.length), 1),
  (parts, random) => parts.headers.push(...parts.headers.slice(below(random, parts.headers.length))),
  (parts, random) => {
    parts.line = pick(random, LINES);
  },
  // CL.TE and TE.CL: one of the two decides where the next request begins.
  (parts, random) => {
    parts.headers.push(pick(random, HEADERS.slice(0, 7)));
    parts.body = pick(random, CHUNKED);
    if (chance(random, 0.5)) parts.headers = parts.headers.filter((header) => !/^content-length/i.test(header));
  },
  // A request in the body, which must stay there.
  (parts) => {
    parts.body = `${parts.line}\r\nHost: inner.example\r\nContent-Length: 0\r\n\r\n`;
    parts.headers = parts.headers.map((header) =>
      /^content-length/i.test(header) ? `Content-Length: ${parts.body.length}` : header,
    );
  },
  (parts, random) => {
    parts.headers = parts.headers.map((header) => (chance(random, 0.3) ? changeCase(random, header) : header));
  },
  (parts, random) => {
    const count = pick(random, [90, 99, 100, 101, 2_100]);
    for (let i = 0; i < count; i++) parts.headers.push("X: y");
    if (chance(random, 0.5)) parts.headers.push("Content-Length: 3");
  },
  (parts, random) => parts.headers.push(`x-long: ${"y".repeat(15_000 + below(random, 3_000))}`),
  (parts, random) => {
    const length = pick(random, [4_095, 4_096, 5_000, 65_536, 66_000]);
    parts.body = "z".repeat(length);
    parts.headers = parts.headers.map((header) =>
      /^content-length/i.test(header) ? `Content-Length: ${length}` : header,
    );
  },
  // Lines that end in a line feed only.
  (parts) => {
    parts.line = `${parts.line}\n${parts.headers.join("\n")}\n`;
    parts.headers = [];
  },
];

/** Bytes that decide how a request is read. */
const SPECIAL = ["\r", "\n", "\r\n", "\r\n\r\n", "\0", " ", "\t", ":", ",", "0", "5", "\xff", "\x7f", "P"];

function mutateBytes(random: Random, text: string): string {
  let changed = text;
  for (let left = 1 + below(random, 3); left > 0; left--) {
    const at = below(random, changed.length);
    const end = at + below(random, 4);
    const inserted = chance(random, 0.7) ? pick(random, SPECIAL) : String.fromCharCode(below(random, 256));
    const kind = below(random, 4);
    if (kind === 0) changed = changed.slice(0, at) + changed.slice(end);
    else if (kind === 1) changed = changed.slice(0, at) + inserted + changed.slice(at);
    else if (kind === 2) changed = changed.slice(0, at) + inserted + changed.slice(at + 1);
    else changed = changed.slice(0, end) + changed.slice(at);
  }
  return changed;
}

function split(random: Random, bytes: Buffer): Buffer[] {
  const cuts = new Set([0, bytes.length]);
  if (chance(random, 0.4))
    for (let left = 1 + below(random, 3); left > 0; left--) cuts.add(below(random, bytes.length + 1));
  const sorted = [...cuts].sort((a, b) => a - b);
  return sorted.slice(1).map((end, i) => bytes.subarray(sorted[i]!, end));
}

function changeCase(random: Random, text: string): string {
  return [...text].map((letter) => (chance(random, 0.5) ? letter.toUpperCase() : letter.toLowerCase())).join("");
}

function below(random: Random, bound: number): number {
  return bound === 0 ? 0 : random.below(bound);
}

function chance(random: Random, share: number): boolean {
  return random.below(1_000) < share * 1_000;
}

function pick<T>(random: Random, values: readonly T[]): T {
  return values[random.below(values.length)]!;
}
