import type { DescriptorEntry } from "../../../../../engine/src/rules/descriptor-tree.ts";
import { bytesTag, MessageReader, MessageWriter, varintTag } from "../../../platform/grpc/protobuf.ts";
import { type StructObject, writeStruct } from "../../../platform/grpc/struct.ts";

// The members that are used of envoy/service/ratelimit/v3/rls.proto and envoy/extensions/common/ratelimit/v3/ratelimit.proto.

/** As many as `ratelimits.multiLimit` takes. */
export const DESCRIPTORS_MAX = 100;
export const ENTRIES_MAX = 32;

export interface RateLimitRequest {
  domain: string;
  descriptors: RateLimitDescriptor[];
  hitsAddend: number;
}

export interface RateLimitDescriptor {
  entries: DescriptorEntry[];
  /** The limit that the caller brings. */
  limit: { requestsPerUnit: number; unit: number } | undefined;
  /** Undefined: that of the request. */
  hitsAddend: number | undefined;
}

export const CODE_OK = 1;
export const CODE_OVER_LIMIT = 2;

/** The state of one descriptor. */
export interface DescriptorStatus {
  code: typeof CODE_OK | typeof CODE_OVER_LIMIT;
  /** Undefined: no limit applies. */
  limit: { requestsPerUnit: number; unit: number; name: string; resetMs: number } | undefined;
  remaining: number;
}

/** Decodes one descriptor, and one entry of a descriptor, more than are allowed at most: the rest is only skipped. */
export function decodeRequest(message: Buffer): RateLimitRequest {
  const request: RateLimitRequest = { domain: "", descriptors: [], hitsAddend: 0 };
  const reader = new MessageReader(message);
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(1)) request.domain = reader.string();
    else if (tag === bytesTag(2) && request.descriptors.length <= DESCRIPTORS_MAX)
      request.descriptors.push(decodeDescriptor(reader.message()));
    else if (tag === varintTag(3)) request.hitsAddend = reader.uint32();
    else reader.skip(tag);
  }
  return request;
}

function decodeDescriptor(reader: MessageReader): RateLimitDescriptor {
  const descriptor: RateLimitDescriptor = { entries: [], limit: undefined, hitsAddend: undefined };
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(1) && descriptor.entries.length <= ENTRIES_MAX)
      descriptor.entries.push(decodeEntry(reader.message()));
    else if (tag === bytesTag(2)) descriptor.limit = decodeLimit(reader.message());
    else if (tag === bytesTag(3)) descriptor.hitsAddend = decodeNumber(reader.message());
    else reader.skip(tag);
  }
  return descriptor;
}

function decodeEntry(reader: MessageReader): DescriptorEntry {
  const entry = { key: "", value: "" };
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === bytesTag(1)) entry.key = reader.string();
    else if (tag === bytesTag(2)) entry.value = reader.string();
    else reader.skip(tag);
  }
  return entry;
}

function decodeLimit(reader: MessageReader): NonNullable<RateLimitDescriptor["limit"]> {
  const limit = { requestsPerUnit: 0, unit: 0 };
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === varintTag(1)) limit.requestsPerUnit = reader.uint32();
    else if (tag === varintTag(2)) limit.unit = reader.uint32();
    else reader.skip(tag);
  }
  return limit;
}

/** The value of a message that wraps a number. */
function decodeNumber(reader: MessageReader): number {
  let value = 0;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === varintTag(1)) value = reader.uint64();
    else reader.skip(tag);
  }
  return value;
}

export function encodeResponse(statuses: readonly DescriptorStatus[], metadata?: StructObject): Uint8Array {
  const writer = new MessageWriter(16 + 48 * statuses.length);
  const isOver = statuses.some(({ code }) => code === CODE_OVER_LIMIT);
  writer.uint32(1, isOver ? CODE_OVER_LIMIT : CODE_OK);
  for (const { code, limit, remaining } of statuses) {
    writer.message(2, () => {
      writer.uint32(1, code);
      if (limit !== undefined) {
        writer.message(2, () => {
          writer.uint32(1, limit.requestsPerUnit);
          writer.uint32(2, limit.unit);
          writer.string(3, limit.name);
        });
      }
      writer.uint32(3, remaining);
      if (limit === undefined) return;
      writer.message(4, () => {
        writer.uint64(1, Math.floor(limit.resetMs / 1_000));
        writer.uint32(2, (limit.resetMs % 1_000) * 1_000_000);
      });
    });
  }
  if (metadata !== undefined) writer.message(6, (struct) => writeStruct(struct, metadata));
  return writer.finish();
}
