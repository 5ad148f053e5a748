import { bytesTag, MessageWriter, varintTag } from "./protobuf.ts";

/** What a `google.protobuf.Struct` holds. */
export type StructValue = string | number | boolean | null | readonly StructValue[] | StructObject;
export interface StructObject {
  readonly [name: string]: StructValue | undefined;
}

/** Writes a `google.protobuf.Struct`. Members that are undefined are left out. */
export function writeStruct(struct: MessageWriter, object: StructObject): void {
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue;
    struct.message(1, (entry) => {
      entry.string(1, name);
      entry.bytes(2, valueBytes(value));
    });
  }
}

/** A `google.protobuf.Value`. One of its members is always there, also with the value that a missing field has. */
function valueBytes(value: StructValue): Uint8Array {
  if (value === null) return Buffer.from([varintTag(1), 0]);
  if (typeof value === "boolean") return Buffer.from([varintTag(4), value ? 1 : 0]);
  if (typeof value === "string" && value === "") return Buffer.from([bytesTag(3), 0]);
  if (typeof value === "number" && value === 0) return Buffer.from([DOUBLE_2, 0, 0, 0, 0, 0, 0, 0, 0]);
  const writer = new MessageWriter();
  if (typeof value === "string") writer.string(3, value);
  else if (typeof value === "number") writer.double(2, value);
  else if (Array.isArray(value)) {
    writer.message(6, (list) => {
      for (const one of value as readonly StructValue[]) list.bytes(1, valueBytes(one));
    });
  } else writer.message(5, (struct) => writeStruct(struct, value as StructObject));
  return writer.finish();
}

/** The tag of field 2 with eight bytes. */
const DOUBLE_2 = (2 << 3) | 1;
