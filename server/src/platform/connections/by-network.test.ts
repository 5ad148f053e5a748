import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ByNetwork } from "./by-network.ts";

interface Member {
  readonly network: string;
}

/** The same in lists, with searches. */
class Model {
  /** The oldest first. */
  members: Member[] = [];
  /** Networks with members, the one with the next turn first. */
  networks: string[] = [];

  add(member: Member): void {
    this.members.push(member);
    if (!this.networks.includes(member.network)) this.networks.push(member.network);
  }

  remove(member: Member): void {
    this.members = this.members.filter((other) => other !== member);
    this.networks = this.networks.filter((network) => this.of(network).length > 0);
  }

  of(network: string): Member[] {
    return this.members.filter((member) => member.network === network);
  }

  largest(preferred?: string): Member[] {
    const most = Math.max(0, ...this.networks.map((network) => this.of(network).length));
    const networks = this.networks.filter((network) => this.of(network).length === most);
    return this.of(networks.find((network) => network === preferred) ?? networks[0] ?? "");
  }

  takeNext(): Member | undefined {
    const [network] = this.networks;
    if (network === undefined) return undefined;
    const [member] = this.of(network) as [Member];
    this.networks = [...this.networks.slice(1), network];
    this.remove(member);
    return member;
  }
}

const NETWORKS = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::/64"];

describe("members by network", () => {
  it("are those of a model that searches lists, whatever comes, goes and has its turn", () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ kind: fc.constant("add" as const), network: fc.constantFrom(...NETWORKS) }) },
      // Of all that ever were there, so some are gone already.
      { weight: 3, arbitrary: fc.record({ kind: fc.constant("remove" as const), index: fc.nat() }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant("turn" as const) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const byNetwork = new ByNetwork<Member>();
        const model = new Model();
        const all: Member[] = [];
        for (const step of steps) {
          if (step.kind === "add") {
            const member = { network: step.network };
            all.push(member);
            model.add(member);
            byNetwork.add(member, step.network);
          } else if (step.kind === "remove") {
            const member = all[step.index % all.length];
            if (member === undefined) continue;
            model.remove(member);
            byNetwork.remove(member);
          } else assert.equal(byNetwork.takeNext(), model.takeNext());

          assert.equal(byNetwork.size, model.members.length);
          assertSame(byNetwork, model.members);
          assertSame(byNetwork.largest(), model.largest());
          for (const network of NETWORKS) {
            assert.equal(byNetwork.count(network), model.of(network).length);
            assertSame(byNetwork.largest(network), model.largest(network));
          }
        }
        // All that are left have their turns.
        while (model.members.length > 0) assert.equal(byNetwork.takeNext(), model.takeNext());
        assert.equal(byNetwork.takeNext(), undefined);
      }),
    );
  });
});

/** The same objects in the same order. Members of one network are equal in their contents. */
function assertSame(actual: Iterable<Member>, expected: readonly Member[]): void {
  const members = [...actual];
  assert.equal(members.length, expected.length);
  for (const [i, member] of members.entries()) assert.equal(member, expected[i]);
}
