import { bytesTag, MessageReader, MessageWriter } from "../../../../platform/grpc/protobuf.ts";
import { type StructObject, writeStruct } from "../../../../platform/grpc/struct.ts";

type Entry = readonly [name: string, value: string];

/** What a `CheckRequest` of envoy.service.auth.v3 says. */
export interface CheckRequest {
  /** The address of the last hop; empty if it has none, such as a socket of Unix. */
  source: string;
  method: string;
  /** The path with its query. */
  path: string;
  /** In the order in which they came. Names are in lower case. */
  headers: Entry[];
  /** What the route says. */
  contextExtensions: Entry[];
}

/** @throws {Problem} `invalid_input` if the bytes are no such message. */
export function readCheckRequest(bytes: Buffer): CheckRequest {
  const request: CheckRequest = { source: "", method: "", path: "", headers: [], contextExtensions: [] };
  const reader = new MessageReader(bytes);
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(1)) readAttributes(reader.message(), request);
    else reader.skip(tag);
  }
  return request;
}

function readAttributes(reader: MessageReader, request: CheckRequest): void {
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(1)) readPeer(reader.message(), request);
    else if (tag === bytesTag(4)) readRequest(reader.message(), request);
    else if (tag === bytesTag(10)) request.contextExtensions.push(readEntry(reader.message()));
    else reader.skip(tag);
  }
}

/** The address of a peer: `SocketAddress.address`. */
function readPeer(reader: MessageReader, request: CheckRequest): void {
  for (const address of messagesOf(reader, 1)) {
    for (const socketAddress of messagesOf(address, 1)) {
      for (let tag = socketAddress.tag(); tag !== 0; tag = socketAddress.tag()) {
        if (tag === bytesTag(2)) request.source = socketAddress.string();
        else socketAddress.skip(tag);
      }
    }
  }
}

function readRequest(reader: MessageReader, request: CheckRequest): void {
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(2)) readHttp(reader.message(), request);
    else reader.skip(tag);
  }
}

function readHttp(reader: MessageReader, request: CheckRequest): void {
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(2)) request.method = reader.string();
    else if (tag === bytesTag(3)) request.headers.push(readEntry(reader.message()));
    else if (tag === bytesTag(4)) request.path = reader.string();
    // With `encode_raw_headers`, instead of the map.
    else if (tag === bytesTag(13)) {
      for (const header of messagesOf(reader.message(), 1)) request.headers.push(readHeader(header));
    } else reader.skip(tag);
  }
}

/** The messages in one field. */
function* messagesOf(reader: MessageReader, field: number): Iterable<MessageReader> {
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(field)) yield reader.message();
    else reader.skip(tag);
  }
}

/** An entry of a map. */
function readEntry(reader: MessageReader): Entry {
  let [name, value] = ["", ""];
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(1)) name = reader.string();
    else if (tag === bytesTag(2)) value = reader.string();
    else reader.skip(tag);
  }
  return [name, value];
}

/** A `HeaderValue`, whose value is a text or bytes. */
function readHeader(reader: MessageReader): Entry {
  let [name, value] = ["", ""];
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(1)) name = reader.string();
    else if (tag === bytesTag(2)) value = reader.string();
    else if (tag === bytesTag(3)) value = reader.bytes().toString("latin1");
    else reader.skip(tag);
  }
  return [name, value];
}

/** What a `CheckResponse` says. */
export interface CheckResponse {
  /** A code of google.rpc.Code; 0: the request passes. */
  readonly code: number;
  /** Of a request that passes. */
  readonly ok?: {
    readonly headers: readonly Entry[];
    readonly headersToRemove: readonly string[];
    readonly responseHeaders: readonly Entry[];
    readonly queryParametersToRemove: readonly string[];
  };
  /** The answer to the end user. */
  readonly denied?: { readonly status: number; readonly headers: readonly Entry[]; readonly body: string };
  /** Becomes `envoy.filters.http.ext_authz` of the dynamic metadata. */
  readonly metadata: StructObject;
}

/** `OVERWRITE_IF_EXISTS_OR_ADD`: what the end user sent under this name does not stay. */
const OVERWRITE = 2;

export function writeCheckResponse({ code, ok, denied, metadata }: CheckResponse): Uint8Array {
  const writer = new MessageWriter(512);
  writer.message(1, (status) => status.uint32(1, code));
  if (denied) {
    writer.message(2, (response) => {
      response.message(1, (status) => status.uint32(1, denied.status));
      for (const header of denied.headers) response.message(2, (option) => writeHeader(option, header));
      response.string(3, denied.body);
    });
  }
  if (ok) {
    writer.message(3, (response) => {
      for (const header of ok.headers) response.message(2, (option) => writeHeader(option, header));
      for (const name of ok.headersToRemove) response.string(5, name);
      for (const header of ok.responseHeaders) response.message(6, (option) => writeHeader(option, header));
      for (const name of ok.queryParametersToRemove) response.string(8, name);
    });
  }
  writer.message(4, (struct) => writeStruct(struct, metadata));
  return writer.finish();
}

/** A `HeaderValueOption`. */
function writeHeader(option: MessageWriter, [name, value]: Entry): void {
  option.message(1, (header) => {
    header.string(1, name);
    header.string(2, value);
  });
  option.uint32(3, OVERWRITE);
}
