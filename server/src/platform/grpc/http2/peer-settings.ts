import { ProtocolError } from "./errors.ts";
import {
  ENABLE_PUSH,
  FLOW_CONTROL_ERROR,
  FRAME_SIZE_ERROR,
  INITIAL_WINDOW_SIZE,
  MAX_FRAME_SIZE,
  NUMBER_MAX,
  PAYLOAD_BYTES_MAX,
  PROTOCOL_ERROR,
  WINDOW_BYTES,
} from "./frames.ts";

const SETTING_BYTES = 6;
const FRAME_SIZE_MAX = 2 ** 24 - 1;

/** What a peer has set, as far as it concerns answers. Their header fields use no dynamic table, so its size does not. */
export class PeerSettings {
  initialWindow = WINDOW_BYTES;

  /**
   * Applies the payload of a frame `SETTINGS`.
   *
   * @throws {ProtocolError}
   */
  apply(payload: Buffer): void {
    if (payload.length % SETTING_BYTES !== 0) throw new ProtocolError(FRAME_SIZE_ERROR);
    for (let at = 0; at < payload.length; at += SETTING_BYTES) {
      const value = payload.readUInt32BE(at + 2);
      switch (payload.readUInt16BE(at)) {
        case ENABLE_PUSH:
          if (value > 1) throw new ProtocolError(PROTOCOL_ERROR);
          break;
        case INITIAL_WINDOW_SIZE:
          if (value > NUMBER_MAX) throw new ProtocolError(FLOW_CONTROL_ERROR);
          this.initialWindow = value;
          break;
        case MAX_FRAME_SIZE:
          // No frame of an answer is longer than the smallest value.
          if (value < PAYLOAD_BYTES_MAX || value > FRAME_SIZE_MAX) throw new ProtocolError(PROTOCOL_ERROR);
      }
    }
  }
}
