/** The number of slots of a cluster, which its protocol fixes. */
export const SLOTS = 16_384;
/** Counters on a cluster are in this many partitions, each in one slot. */
export const PARTITIONS = 1_024;
const SLOTS_PER_PARTITION = SLOTS / PARTITIONS;

/** CRC-16/XMODEM of each byte, which the specification of Redis Cluster prescribes. */
const crcTable = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** The slot of a hash tag, or of a key without one. */
export function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag)) crc = ((crc << 8) ^ crcTable[(crc >> 8) ^ byte]!) & 0xffff;
  return crc % SLOTS;
}

/** A hash tag per partition. The tag of partition n is in the slots 16n to 16n + 15, so slots are used evenly. */
const tags = makeTags();

function makeTags(): string[] {
  const found: string[] = [];
  for (let number = 0, missing = PARTITIONS; missing > 0; number++) {
    const partition = Math.floor(slotOf(String(number)) / SLOTS_PER_PARTITION);
    if (found[partition] !== undefined) continue;
    found[partition] = String(number);
    missing--;
  }
  return found;
}

/** The prefix of all keys of a partition. */
export function prefixOf(partition: number): string {
  return `latchkey:{${tags[partition]!}}:`;
}

/** The slot of all keys of a partition. */
export function slotOfPartition(partition: number): number {
  return slotOf(tags[partition]!);
}

/**
 * The partition of a counter. All limits of one key, and all limits of one identity, are in one partition, so that one
 * script decides them. The identifiers of a namespace are spread over all partitions.
 */
export function partitionOf(counter: string): number {
  return Math.floor(slotOf(groupOf(counter)) / SLOTS_PER_PARTITION);
}

/** The name of the counter without the name of the limit: its key or identity. */
function groupOf(counter: string): string {
  if (!counter.startsWith("key\0") && !counter.startsWith("identity\0")) return counter;
  const end = counter.indexOf("\0", counter.indexOf("\0") + 1);
  return end === -1 ? counter : counter.slice(0, end);
}
