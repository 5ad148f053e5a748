import { Problem } from "../rpc/problems.ts";

/** What anybody may send; more is read only of callers that are known. */
export const UNKNOWN_BODY_BYTES_MAX = 64 * 1024;

/** A chunk shorter than this is not counted: all connections together hold little in such chunks. */
export const COUNTED_BYTES_MIN = 4 * 1024;

/** Of the whole, for the first 64 KiB of bodies; the rest is for what is beyond them. */
const SHORT_SHARE = 1 / 4;
/** Of the memory for long bodies, for one workspace. */
const WORKSPACE_SHARE = 1 / 2;

/** A body that is being read, or whose call is being answered. */
export interface HeldBody {
  /** Counts bytes of the first 64 KiB. False: there is no room for them; nothing was counted. */
  takeShort(bytes: number): boolean;
  /** Counts bytes beyond those, for the workspace that sends them. */
  takeLong(bytes: number, workspaceId: string): boolean;
  /** It has arrived and is not given up any more. */
  complete(): void;
  /** Its memory is free. */
  release(): void;
}

interface Body {
  short: number;
  long: number;
  workspaceId: string;
  giveUp(): void;
}

/**
 * Bounds the memory of request bodies on their way in.
 *
 * For the first 64 KiB, which callers send before it is known who they are, the body that has been incomplete for the
 * longest gives way to a new one: a caller who sends slowly cannot keep out one who sends at once. Beyond that, a
 * workspace has its share, so that no tenant keeps out another.
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
  /** Bodies that were refused, or given up, for want of memory. */
  refused = 0;

  /**
   * @param bytesMax of all bodies together.
   * @param bodyBytesMax of one of them: there is always room for one.
   */
  constructor(bytesMax: number, bodyBytesMax: number) {
    this.#shortMax = SHORT_SHARE * bytesMax;
    this.#longMax = Math.max(bytesMax - this.#shortMax, bodyBytesMax);
    this.#workspaceMax = Math.max(WORKSPACE_SHARE * this.#longMax, bodyBytesMax);
  }

  /** Bytes that are held. */
  get bytes(): number {
    return this.#short + this.#long;
  }

  /** @param giveUp refuses the body and forgets what arrived of it, to make room for another one. */
  hold(giveUp: () => void): HeldBody {
    const body: Body = { short: 0, long: 0, workspaceId: "", giveUp };
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
      this.refused++;
      this.#release(oldest);
      oldest.giveUp();
    }
    if (this.#short + bytes > this.#shortMax) {
      this.refused++;
      return false;
    }
    this.#short += bytes;
    body.short += bytes;
    return true;
  }

  #takeLong(body: Body, bytes: number, workspaceId: string): boolean {
    const held = this.#longOf.get(workspaceId) ?? 0;
    if (this.#long + bytes > this.#longMax || held + bytes > this.#workspaceMax) {
      this.refused++;
      return false;
    }
    this.#long += bytes;
    body.long += bytes;
    body.workspaceId = workspaceId;
    this.#longOf.set(workspaceId, held + bytes);
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

/** There is no memory for a body at the moment. */
export function noRoomForBody(): Problem {
  return new Problem(
    "service_unavailable",
    "The service holds as many request bodies as it has memory for. Try again shortly.",
    { headers: { "retry-after": "1" } },
  );
}
