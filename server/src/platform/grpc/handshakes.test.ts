import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { seededRandom } from "../../../../engine/src/random/seeded.ts";
import { BEGUN_MAX, HANDSHAKES_MAX, Handshakes } from "./handshakes.ts";

let port = 0;

/** A connection that does nothing. */
class SilentSocket extends EventEmitter {
  readonly remoteAddress: string;
  readonly remotePort = port++;
  destroyed = false;

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
}

function open(timeMax = 10_000) {
  const clock = new SimulatedClock(0);
  const begun: SilentSocket[] = [];
  const handshakes = new Handshakes({
    clock,
    timeMax,
    begin: (socket) => begun.push(socket as unknown as SilentSocket),
  });
  const add = (count: number, network: string) =>
    Array.from({ length: count }, () => {
      const socket = new SilentSocket(network);
      handshakes.add(socket as unknown as Socket);
      return socket;
    });
  const end = (socket: SilentSocket) => handshakes.end(socket as unknown as Socket);
  return { clock, begun, handshakes, add, end };
}

const [ONE, OTHER] = ["192.0.2.1", "192.0.2.2"];

describe("the handshakes of a listener", () => {
  it("begin a few at once, the others when one has ended, the networks in turn", () => {
    const { begun, add, end } = open();
    const many = add(BEGUN_MAX + 10, ONE);
    const few = add(2, OTHER);
    assert.deepEqual(begun, many.slice(0, BEGUN_MAX));
    for (const socket of many.slice(0, 4)) end(socket);
    assert.deepEqual(begun.slice(BEGUN_MAX), [many[BEGUN_MAX], few[0], many[BEGUN_MAX + 1], few[1]]);
    many[4]?.destroy();
    assert.equal(begun.at(-1), many[BEGUN_MAX + 2]);
  });

  it("give way to one that waits after a second, and not before", () => {
    const { clock, begun, handshakes, add } = open();
    const slow = add(BEGUN_MAX, ONE);
    clock.advance(999);
    const [waiting] = add(1, OTHER);
    assert.equal(begun.includes(waiting as SilentSocket), false);
    clock.advance(1);
    handshakes.sweep();
    assert.equal(begun.at(-1), waiting);
    assert.deepEqual(
      slow.map(({ destroyed }) => destroyed),
      slow.map((_, i) => i === 0),
    );
  });

  it("go on as long as they may where none waits", () => {
    const { clock, handshakes, add } = open();
    const [slow] = add(1, ONE) as [SilentSocket];
    clock.advance(10_000);
    handshakes.sweep();
    assert.equal(slow.destroyed, false);
    clock.advance(1);
    handshakes.sweep();
    assert.equal(slow.destroyed, true);
  });

  it("replace the oldest one of the network that has the most when too many wait", () => {
    const { add } = open();
    const few = add(BEGUN_MAX + 10, OTHER);
    const many = add(HANDSHAKES_MAX - few.length, ONE);
    add(3, "192.0.2.3");
    assert.deepEqual(
      many.map(({ destroyed }) => destroyed),
      many.map((_, i) => i < 3),
    );
    assert(few.every(({ destroyed }) => !destroyed));
  });

  it("never wait where fewer than that go on, whatever ends when (seeded)", () => {
    const random = seededRandom(20_261_128);
    const { clock, begun, handshakes, add, end } = open();
    const all: SilentSocket[] = [];
    const ended = new Set<SilentSocket>();
    for (let step = 0; step < 20_000; step++) {
      const among = <T>(list: readonly T[]) => list[random.below(Math.max(1, list.length))];
      const going = begun.filter((socket) => !socket.destroyed && !ended.has(socket));
      const waiting = all.filter((socket) => !socket.destroyed && !ended.has(socket) && !begun.includes(socket));
      assert(going.length <= BEGUN_MAX);
      assert(waiting.length === 0 || going.length === BEGUN_MAX, `step ${step}`);
      assert(going.length + waiting.length <= HANDSHAKES_MAX);
      const drawn = random.below(100);
      if (drawn < 50) all.push(...add(1 + random.below(3), `192.0.2.${random.below(5)}`));
      else if (drawn < 80) {
        const one = among(going);
        if (one) {
          ended.add(one);
          end(one);
        }
      } else if (drawn < 95) among([...going, ...waiting])?.destroy();
      else {
        clock.advance(random.below(3_000));
        handshakes.sweep();
      }
      for (const list of [all, begun]) {
        const kept = list.filter((socket) => !socket.destroyed && !ended.has(socket));
        if (list.length > 200) list.splice(0, list.length, ...kept);
      }
    }
    handshakes.destroy();
    assert(all.every((socket) => socket.destroyed || ended.has(socket)));
  });
});
