import { Problem } from "../rpc/problems.ts";

/** Bytes of a body that every caller may send. More is read only after authentication. */
export const UNAUTHENTICATED_BODY_BYTES_MAX = 64 * 1024;

/** Shorter chunks are not counted: they take little memory, also on all connections together. */
export const COUNTED_BYTES_MIN = 4 * 1024;

/** The share of the memory for the first 64 KiB of bodies. The rest is for longer bodies. */
const SHORT_SHARE = 1 / 4;
/** The share of the memory for longer bodies that one workspace may use. */
const WORKSPACE_SHARE = 1 / 2;

/** Memory of a body that is being read, or of which the call is being answered. */
export interface BodyReservation {
  /** Counts bytes of the first 64 KiB. False: there is no memory for them, and nothing was counted. */
  takeShort(bytes: number): boolean;
  /** Counts bytes beyond 64 KiB, for the workspace that sends them. */
  takeLong(bytes: number, workspaceId: string): boolean;
  /** The body has arrived, so it is not dropped for a new one. */
  complete(): void;
  /** Frees the memory. */
  release(): void;
}

interface Body {
  short: number;
  long: number;
  workspaceId: string;
  drop(): void;
}

/**
 * Limits the memory of incoming request bodies.
 *
 * The first 64 KiB arrive before authentication. When their memory is full, a new body replaces the one that has been
 * incomplete for the longest, so slow callers cannot block fast ones. Beyond 64 KiB each workspace has a share, so one
 * tenant cannot block another.
 */
export class BodyBudget {
  readonly #shortMax: number;
  readonly #longMax: number;
  readonly #workspaceMax: number;
  #short = 0;
  #long = 0;
  readonly #longOf = new Map<string, number>();
  /** Oldest first. */
  readonly #incomplete = new Set<Body>();
  /** Bodies that were rejected or dropped because the memory was full. */
  rejected = 0;

  /**
   * @param bytesMax of all bodies together.
   * @param bodyBytesMax of one body. There is always memory for one.
   */
  constructor(bytesMax: number, bodyBytesMax: number) {
    this.#shortMax = SHORT_SHARE * bytesMax;
    this.#longMax = Math.max(bytesMax - this.#shortMax, bodyBytesMax);
    this.#workspaceMax = Math.max(WORKSPACE_SHARE * this.#longMax, bodyBytesMax);
  }

  /** Bytes in use. */
  get bytes(): number {
    return this.#short + this.#long;
  }

  /** @param drop rejects the body and discards its bytes, to make room for another one. */
  reserve(drop: () => void): BodyReservation {
    const body: Body = { short: 0, long: 0, workspaceId: "", drop };
    this.#incomplete.add(body);
    return {
      takeShort: (bytes) => this.#takeShort(body, bytes),
      takeLong: (bytes, workspaceId) => this.#takeLong(body, bytes, workspaceId),
      complete: () => void this.#incomplete.delete(body),
      release: () => this.#release(body),
    };
  }

  #takeShort(body: Body, bytes: number): boolean {
    for (const oldest of this.#incomplete) {
      if (this.#short + bytes <= this.#shortMax) break;
      if (oldest === body) continue;
      this.rejected++;
      this.#release(oldest);
      oldest.drop();
    }
    if (this.#short + bytes > this.#shortMax) {
      this.rejected++;
      return false;
    }
    this.#short += bytes;
    body.short += bytes;
    return true;
  }

  #takeLong(body: Body, bytes: number, workspaceId: string): boolean {
    const used = this.#longOf.get(workspaceId) ?? 0;
    if (this.#long + bytes > this.#longMax || used + bytes > this.#workspaceMax) {
      this.rejected++;
      return false;
    }
    this.#long += bytes;
    body.long += bytes;
    body.workspaceId = workspaceId;
    this.#longOf.set(workspaceId, used + bytes);
    return true;
  }

  #release(body: Body): void {
    this.#incomplete.delete(body);
    this.#short -= body.short;
    this.#long -= body.long;
    const left = (this.#longOf.get(body.workspaceId) ?? 0) - body.long;
    if (left > 0) this.#longOf.set(body.workspaceId, left);
    else this.#longOf.delete(body.workspaceId);
    body.short = 0;
    body.long = 0;
  }
}

/** The problem of a body for which there is no memory at the moment. */
export function noMemoryForBody(): Problem {
  return new Problem(
    "service_unavailable",
    "The service holds as many request bodies as it has memory for. Try again shortly.",
    { headers: { "retry-after": "1" } },
  );
}
