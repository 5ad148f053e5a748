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
  eachField(new MessageReader(bytes), {
    [bytesTag(1)]: (attributes) =>
      eachField(attributes.message(), {
        [bytesTag(1)]: (source) => readPeer(source.message(), request),
        [bytesTag(4)]: (wrapped) =>
          eachField(wrapped.message(), { [bytesTag(2)]: (http) => readHttp(http.message(), request) }),
        [bytesTag(10)]: (extensions) => request.contextExtensions.push(readEntry(extensions.message())),
      }),
  });
  return request;
}

/** The address of a peer: `SocketAddress.address`. */
function readPeer(peer: MessageReader, request: CheckRequest): void {
  eachField(peer, {
    [bytesTag(1)]: (address) =>
      eachField(address.message(), {
        [bytesTag(1)]: (socketAddress) =>
          eachField(socketAddress.message(), {
            [bytesTag(2)]: (text) => {
              request.source = text.string();
            },
          }),
      }),
  });
}

function readHttp(http: MessageReader, request: CheckRequest): void {
  eachField(http, {
    [bytesTag(2)]: (method) => {
      request.method = method.string();
    },
    [bytesTag(3)]: (headers) => request.headers.push(readEntry(headers.message())),
    [bytesTag(4)]: (path) => {
      request.path = path.string();
    },
    // With `encode_raw_headers`, instead of the map.
    [bytesTag(13)]: (map) =>
      eachField(map.message(), { [bytesTag(1)]: (header) => request.headers.push(readHeader(header.message())) }),
  });
}

/** An entry of a map. */
function readEntry(entry: MessageReader): Entry {
  let [name, value] = ["", ""];
  eachField(entry, {
    [bytesTag(1)]: (text) => {
      name = text.string();
    },
    [bytesTag(2)]: (text) => {
      value = text.string();
    },
  });
  return [name, value];
}

/** A `HeaderValue`, whose value is a text or bytes. */
function readHeader(header: MessageReader): Entry {
  let [name, value] = ["", ""];
  eachField(header, {
    [bytesTag(1)]: (text) => {
      name = text.string();
    },
    [bytesTag(2)]: (text) => {
      value = text.string();
    },
    [bytesTag(3)]: (bytes) => {
      value = bytes.bytes().toString("latin1");
    },
  });
  return [name, value];
}

/** Calls the function of each field that is known, by its tag. */
function eachField(reader: MessageReader, fields: Readonly<Record<number, (reader: MessageReader) => unknown>>): void {
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    const read = fields[tag];
    if (read === undefined) reader.skip(tag);
    else read(reader);
  }
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
