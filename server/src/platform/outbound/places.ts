import { addTo } from "./count.ts";

/**
 * A number of places that owners share. An owner gets a further place only while more are free than it has: alone it gets
 * half of them, and n owners get 1/(n + 1) each. So a further owner finds a free place, however many the others want.
 */
export class Places {
  readonly #max: number;
  readonly #byOwner = new Map<string, number>();
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** The places of an owner. */
  of(owner: string): number {
    return this.#byOwner.get(owner) ?? 0;
  }

  /** Whether there is a place. Without an owner, every free place counts. */
  hasRoom(owner: string | undefined): boolean {
    const free = this.#max - this.#taken;
    return owner === undefined ? free > 0 : free > this.of(owner);
  }

  take(owner: string | undefined): void {
    this.#add(owner, 1);
  }

  giveBack(owner: string | undefined): void {
    this.#add(owner, -1);
  }

  #add(owner: string | undefined, difference: number): void {
    this.#taken += difference;
    if (owner !== undefined) addTo(this.#byOwner, owner, difference);
  }
}
