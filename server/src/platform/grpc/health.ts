import type { UnaryMethod } from "./method.ts";
import { bytesTag, MessageReader, MessageWriter } from "./protobuf.ts";
import { GrpcError, NOT_FOUND } from "./status.ts";

const SERVING = 1;
const NOT_SERVING = 2;

/**
 * `grpc.health.v1.Health/Check` of these services, and of all with an empty name. It needs no root key, as `/health/ready`
 * does not. `Watch` is not implemented, which its protocol allows.
 */
export function healthCheck(services: readonly string[], isReady: () => boolean): UnaryMethod {
  return {
    name: "grpc.health.v1.Health/Check",
    messageBytesMax: 1_024,
    answer(message) {
      let service = "";
      const reader = new MessageReader(message);
      for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
        if (tag === bytesTag(1)) service = reader.string();
        else reader.skip(tag);
      }
      if (service !== "" && !services.includes(service)) {
        throw new GrpcError(NOT_FOUND, `There is no service '${service}' here.`);
      }
      const writer = new MessageWriter(8);
      writer.uint32(1, isReady() ? SERVING : NOT_SERVING);
      return writer.finish();
    },
  };
}
