/** Messages as their fields by number, so that tests read them with other code than the service writes them with. */

export type Fields = ReadonlyMap<number, readonly (number | Buffer)[]>;

/** Any message: its fields by their numbers. Doubles are numbers, and texts, bytes and messages are bytes. */
export function decode(bytes: Buffer): Fields {
  const fields = new Map<number, (number | Buffer)[]>();
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    let value: number | Buffer;
    if ((tag & 7) === 0) value = varint();
    else if ((tag & 7) === 1) {
      value = bytes.readDoubleLE(at);
      at += 8;
    } else {
      const length = varint();
      value = bytes.subarray(at, at + length);
      at += length;
    }
    fields.set(tag >>> 3, [...(fields.get(tag >>> 3) ?? []), value]);
  }
  return fields;
}

export const messages = (fields: Fields, number: number) =>
  (fields.get(number) ?? []).map((bytes) => decode(bytes as Buffer));
export const texts = (fields: Fields, number: number) => (fields.get(number) ?? []).map(String);
export const textOf = (fields: Fields, number: number) => texts(fields, number)[0] ?? "";
export const numberOf = (fields: Fields, number: number) => (fields.get(number)?.[0] ?? 0) as number;

/** A `google.protobuf.Struct`. */
export function structOf(struct: Fields): Record<string, unknown> {
  return Object.fromEntries(
    messages(struct, 1).map((entry) => [textOf(entry, 1), metadataValue(messages(entry, 2)[0]!)]),
  );
}

function metadataValue(value: Fields): unknown {
  const [kind] = value.keys();
  switch (kind) {
    case 1:
      return null;
    case 2:
      return numberOf(value, 2);
    case 3:
      return textOf(value, 3);
    case 4:
      return numberOf(value, 4) === 1;
    case 5:
      return structOf(messages(value, 5)[0]!);
    case 6:
      return messages(messages(value, 6)[0]!, 1).map(metadataValue);
    default:
      throw new Error("A value has no member");
  }
}
