/** Messages of `envoy.service.ratelimit.v3`, as a gateway writes and reads them. */
import { MessageReader, MessageWriter } from "../../src/platform/grpc/protobuf.ts";
import { decode, structOf } from "./fields.ts";

export const SHOULD_RATE_LIMIT = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

export interface Descriptor {
  entries: readonly (readonly [key: string, value: string])[];
  /** The limit that the gateway brings, and its unit: 1 is a second, 2 a minute. */
  limit?: readonly [requestsPerUnit: number, unit: number];
  hits?: number;
}

export function rateLimitRequest(domain: string, descriptors: readonly Descriptor[], hits = 0): Buffer {
  const writer = new MessageWriter();
  writer.string(1, domain);
  for (const { entries, limit, hits: own } of descriptors) {
    writer.message(2, () => {
      for (const [key, value] of entries) {
        writer.message(1, () => {
          writer.string(1, key);
          writer.string(2, value);
        });
      }
      if (limit) {
        writer.message(2, () => {
          writer.uint32(1, limit[0]);
          writer.uint32(2, limit[1]);
        });
      }
      if (own !== undefined) writer.message(3, () => writer.uint64(1, own));
    });
  }
  writer.uint32(3, hits);
  return writer.finish();
}

export interface Status {
  code: number;
  limit?: { requestsPerUnit: number; unit: number; name: string };
  remaining: number;
  /** Milliseconds until the reset. */
  reset?: number;
}

/** Every field of a message by its number; nested messages as readers. */
function fields(reader: MessageReader): Map<number, (number | Buffer)[]> {
  const found = new Map<number, (number | Buffer)[]>();
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    const values = found.get(tag >>> 3) ?? [];
    values.push((tag & 7) === 0 ? reader.uint64() : reader.bytes());
    found.set(tag >>> 3, values);
  }
  return found;
}

export interface RateLimitResponse {
  code: number;
  statuses: Status[];
  metadata?: Record<string, unknown>;
}

export function readResponse(body: Buffer): RateLimitResponse {
  const of = (bytes: Buffer) => fields(new MessageReader(bytes));
  const number = (message: Map<number, (number | Buffer)[]>, field: number) => Number(message.get(field)?.[0] ?? 0);
  const response = of(body);
  const statuses = (response.get(2) ?? []).map((bytes): Status => {
    const status = of(bytes as Buffer);
    const [limit, duration] = [status.get(2)?.[0], status.get(4)?.[0]].map((one) => one && of(one as Buffer));
    return {
      code: number(status, 1),
      remaining: number(status, 3),
      ...(limit && {
        limit: { requestsPerUnit: number(limit, 1), unit: number(limit, 2), name: String(limit.get(3)?.[0] ?? "") },
      }),
      ...(duration && { reset: number(duration, 1) * 1_000 + number(duration, 2) / 1_000_000 }),
    };
  });
  const [metadata] = response.get(6) ?? [];
  return {
    code: number(response, 1),
    statuses,
    ...(metadata !== undefined && { metadata: structOf(decode(metadata as Buffer)) }),
  };
}
