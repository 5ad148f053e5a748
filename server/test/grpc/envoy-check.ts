/** The messages of envoy.service.auth.v3, as Envoy writes and reads them. */
import { MessageWriter } from "../../src/platform/grpc/protobuf.ts";
import { decode, type Fields, messages, numberOf, structOf, textOf, texts } from "./fields.ts";

export const CHECK = "envoy.service.auth.v3.Authorization/Check";

export interface CheckQuestion {
  readonly extensions: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>> | readonly (readonly [string, string])[];
  readonly method?: string;
  readonly path?: string;
  readonly source?: string;
  /** Whether headers are sent as `encode_raw_headers` does. */
  readonly isRaw?: boolean;
}

export interface CheckedRequest {
  code: number;
  denied?: { status: number; headers: Record<string, string>; body: string };
  ok?: {
    headers: Record<string, string>;
    responseHeaders: Record<string, string>;
    headersToRemove: string[];
    queryParametersToRemove: string[];
  };
  // biome-ignore lint/suspicious/noExplicitAny: each test knows its metadata.
  metadata: any;
  /** The `append_action` of every header. */
  actions: Set<number>;
}

/** A `CheckRequest`. */
export function checkRequest(question: CheckQuestion): Buffer {
  const { extensions, headers = {}, method = "GET", path = "/", source = "198.51.100.7", isRaw = false } = question;
  const entries = (Array.isArray(headers) ? headers : Object.entries(headers)) as [string, string][];
  const writer = new MessageWriter();
  const entry = (field: number, [name, value]: [string, string], to: MessageWriter) =>
    to.message(field, (one) => {
      one.string(1, name);
      one.string(2, value);
    });
  writer.message(1, (attributes) => {
    attributes.message(1, (peer) => {
      peer.message(1, (address) =>
        address.message(1, (socket) => {
          socket.string(2, source);
          socket.uint32(3, 51_234);
        }),
      );
    });
    attributes.message(4, (wrapped) => {
      wrapped.message(1, (time) => time.uint32(1, 1_768_478_400));
      wrapped.message(2, (http) => {
        http.string(1, "1234567890");
        http.string(2, method);
        if (isRaw) {
          http.message(13, (map) => {
            for (const [name, value] of entries) {
              map.message(1, (header) => {
                header.string(1, name);
                header.bytes(3, Buffer.from(value, "latin1"));
              });
            }
          });
        } else
          for (const one of [[":path", path], [":method", method], ...entries]) entry(3, one as [string, string], http);
        http.string(4, path);
        http.string(5, "api.example.com");
        http.string(10, "HTTP/1.1");
      });
    });
    for (const one of Object.entries(extensions)) entry(10, one, attributes);
  });
  return writer.finish();
}

/** A `CheckResponse`. */
export function readCheckResponse(bytes: Buffer): CheckedRequest {
  const response = decode(bytes);
  const actions = new Set<number>();
  const headersOf = (options: readonly Fields[]) => {
    const headers: Record<string, string> = {};
    for (const option of options) {
      const [header] = messages(option, 1);
      const name = textOf(header!, 1);
      if (name in headers) throw new Error(`${name} is there twice`);
      headers[name] = textOf(header!, 2);
      actions.add(numberOf(option, 3));
    }
    return headers;
  };
  const [status] = messages(response, 1);
  const [denied] = messages(response, 2);
  const [ok] = messages(response, 3);
  const [metadata] = messages(response, 4);
  return {
    code: numberOf(status!, 1),
    ...(denied && {
      denied: {
        status: numberOf(messages(denied, 1)[0]!, 1),
        headers: headersOf(messages(denied, 2)),
        body: textOf(denied, 3),
      },
    }),
    ...(ok && {
      ok: {
        headers: headersOf(messages(ok, 2)),
        headersToRemove: texts(ok, 5),
        responseHeaders: headersOf(messages(ok, 6)),
        queryParametersToRemove: texts(ok, 8),
      },
    }),
    metadata: metadata && structOf(metadata),
    actions,
  };
}
