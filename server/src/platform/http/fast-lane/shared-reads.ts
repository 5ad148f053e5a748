import { Socket } from "node:net";

/** Node reads at most so many bytes of a connection at a time. */
const READ_BYTES = 64 * 1024;

/** What all connections of this thread are read into, one after the other. */
const memory = Buffer.allocUnsafeSlow(READ_BYTES);

/** Gets a chunk as the first bytes of `memory`, which the next chunk of any connection overwrites. */
export type ReadShared<S extends Socket> = (this: S, bytes: number, memory: Buffer) => boolean;

const members = Object.getOwnPropertySymbols(new Socket());
const MEMORY = members.find(({ description }) => description === "kBuffer");
const CALLBACK = members.find(({ description }) => description === "kBufferCb");

/**
 * Reads a connection into memory that all connections share. Node has this for clients alone, by the option `onread`, so its
 * members of the socket are set here. Otherwise 64 KiB are allocated for each read, and the chunk passes through the stream.
 *
 * Without effect, so that chunks stay events, for a connection in memory, and if a version of Node has other members.
 */
export function shareReads<S extends Socket>(socket: S, read: ReadShared<S>): void {
  const { _handle: handle } = socket as { _handle?: { useUserBuffer?(memory: Buffer): void } | null };
  if (MEMORY === undefined || CALLBACK === undefined || handle?.useUserBuffer === undefined) return;
  Object.assign(socket, { [MEMORY]: memory, [CALLBACK]: read });
  handle.useUserBuffer(memory);
}
