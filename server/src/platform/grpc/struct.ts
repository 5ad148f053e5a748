import { bytesTag, type MessageWriter, varintTag } from "./protobuf.ts";

/** What a `google.protobuf.Struct` holds. */
export type StructValue = string | number | boolean | null | readonly StructValue[] | StructObject;
export interface StructObject {
  readonly [name: string]: StructValue | undefined;
}

/** Writes a `google.protobuf.Struct`. Members that are undefined are left out. */
export function writeStruct(struct: MessageWriter, object: StructObject): void {
  for (const name of Object.keys(object)) {
    const value = object[name];
    if (value === undefined) continue;
    struct.message(1, () => {
      struct.string(1, name);
      struct.message(2, () => writeValue(struct, value));
    });
  }
}

/** Values that a missing field would have. */
const none = Buffer.from([varintTag(1), 0]);
const no = Buffer.from([varintTag(4), 0]);
const empty = Buffer.from([bytesTag(3), 0]);
/** Field 2 with eight bytes. */
const zero = Buffer.from([(2 << 3) | 1, 0, 0, 0, 0, 0, 0, 0, 0]);

/** A `google.protobuf.Value`. One of its members is always there. */
function writeValue(writer: MessageWriter, value: StructValue): void {
  if (value === null) writer.append(none);
  else if (value === false) writer.append(no);
  else if (value === "") writer.append(empty);
  else if (value === 0) writer.append(zero);
  else if (value === true) writer.bool(4, value);
  else if (typeof value === "string") writer.string(3, value);
  else if (typeof value === "number") writer.double(2, value);
  else if (Array.isArray(value)) {
    writer.message(6, () => {
      for (const one of value as readonly StructValue[]) writer.message(1, () => writeValue(writer, one));
    });
  } else writer.message(5, () => writeStruct(writer, value as StructObject));
}
