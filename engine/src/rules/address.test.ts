import assert from "node:assert/strict";
import { BlockList, isIPv4, isIPv6 } from "node:net";
import { describe, it } from "node:test";
import fc from "fast-check";
import { addressList, addressNetwork, callerAddress, isCidr, isListed, UNREADABLE_ADDRESS } from "./address.ts";

describe("isCidr", () => {
  it("accepts the addresses and CIDRs of both families that a list can contain", () => {
    const addresses = fc.oneof(fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(addresses, fc.option(fc.nat(128)), (address, bits) => {
        const text = bits === null ? address : `${address}/${bits}`;
        assert.equal(isCidr(text), bits === null || bits <= (isIPv4(address) ? 32 : 128), text);
        if (isCidr(text)) assert(isListed(addressList([text])!, address), text);
      }),
    );
  });

  it("rejects other texts", () => {
    const wrong = [
      "",
      "/8",
      "10.0.0.0/",
      "10.0.0.0/-1",
      "10.0.0.0/8/8",
      "10.0.0/8",
      "1.2.3.4 ",
      "fe80::1%eth0",
      "*",
      "a.b",
    ];
    for (const text of wrong) assert(!isCidr(text), text);
  });
});

describe("isListed", () => {
  it("matches an IPv4 address in every IPv6 form that contains it", () => {
    const forms = [
      "10.1.2.3",
      "::ffff:10.1.2.3",
      "::FFFF:a01:203",
      "0:0:0:0:0:ffff:10.1.2.3",
      "0:0:0:0:0:ffff:0a01:0203",
      "0::ffff:10.1.2.3",
    ];
    for (const cidr of ["10.1.0.0/16", "::ffff:10.1.0.0/112", "::ffff:a01:203"]) {
      for (const form of forms) assert(isListed(addressList([cidr])!, form), `${form} in ${cidr}`);
    }
    for (const form of forms) assert(!isListed(addressList(["10.2.0.0/16", "2001:db8::/32"])!, form), form);
  });

  it("contains what Node's list of the same blocks contains", () => {
    // Few different bits, so that blocks overlap, touch and contain addresses.
    const octet = fc.constantFrom(0, 1, 127, 128, 255);
    const ipv4 = fc.array(octet, { minLength: 4, maxLength: 4 }).map((octets) => octets.join("."));
    const group = fc.constantFrom("0", "1", "7fff", "8000", "FFFF");
    const ipv6 = fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.join(":"));
    const block = fc.oneof(
      fc.tuple(ipv4, fc.nat(32)).map(([address, bits]) => ({ address, bits, family: "ipv4" as const })),
      fc.tuple(ipv6, fc.nat(128)).map(([address, bits]) => ({ address, bits, family: "ipv6" as const })),
    );
    const addresses = fc.array(fc.oneof(ipv4, ipv6), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.array(block, { minLength: 1, maxLength: 12 }), addresses, (blocks, addresses) => {
        const list = addressList(blocks.map(({ address, bits }) => `${address}/${bits}`))!;
        const oracle = new BlockList();
        for (const { address, bits, family } of blocks) oracle.addSubnet(address, bits, family);
        for (const address of [...addresses, ...blocks.map(({ address }) => address)]) {
          const expected = oracle.check(address, isIPv6(address) ? "ipv6" : "ipv4");
          assert.equal(isListed(list, address), expected, `${address} in ${JSON.stringify(blocks)}`);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("finds no list that contains an invalid address", () => {
    const everything = addressList(["0.0.0.0/0", "::/0"])!;
    for (const text of ["", "unknown", "1.2.3.4:80", "[::1]", "1.2.3", "_hidden"]) assert(!isListed(everything, text));
  });
});

describe("callerAddress", () => {
  const PROXY = "192.0.2.1";
  const trusted = addressList(["192.0.2.0/24", "2001:db8:a::/48"]);

  it("parses a hop with a port, in brackets, or quoted", () => {
    for (const [hop, address] of [
      ["203.0.113.5", "203.0.113.5"],
      ["203.0.113.5:4711", "203.0.113.5"],
      ["2001:db8::1", "2001:db8::1"],
      ["[2001:db8::1]", "2001:db8::1"],
      ["[2001:db8::1]:443", "2001:db8::1"],
      ['"[2001:db8::1]:443"', "2001:db8::1"],
      ['"203.0.113.5"', "203.0.113.5"],
      ["::ffff:203.0.113.5", "::ffff:203.0.113.5"],
      [`198.51.100.9, 203.0.113.5:1, ${PROXY}:2, [2001:db8:a::1]:3`, "203.0.113.5"],
    ] as const) {
      assert.equal(callerAddress(PROXY, hop, trusted), address, hop);
    }
  });

  it("reports any other hop as unreadable, and never returns the proxy's address", () => {
    const unreadable = ["unknown", "_hidden", "", " ", "203.0.113.5:", "203.0.113.5:123456", "[203.0.113.5]", "[::1"];
    for (const hop of [...unreadable, "::1]", '"', '""', "203.0.113.256", "203.0.113.5/32", "a:b:c", "[::1]x"]) {
      assert.equal(callerAddress(PROXY, `10.0.0.1, ${hop}`, trusted), UNREADABLE_ADDRESS, hop);
    }
  });

  it("ignores the hops before the first one that an untrusted peer forwarded", () => {
    assert.equal(callerAddress(PROXY, "unknown, 203.0.113.5", trusted), "203.0.113.5");
    assert.equal(callerAddress("203.0.113.5", "unknown", trusted), "203.0.113.5");
    assert.equal(callerAddress(PROXY, undefined, trusted), PROXY);
  });
});

describe("addressNetwork", () => {
  it("is the address for IPv4, and the first half for IPv6, in any notation", () => {
    for (const [address, network] of [
      ["203.0.113.5", "203.0.113.5"],
      ["::ffff:203.0.113.5", "203.0.113.5"],
      ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
      ["2001:0DB8:1:2::6", "2001:db8:1:2"],
      ["2001:db8::6", "2001:db8:0:0"],
      ["::1", "0:0:0:0"],
      ["1::", "1:0:0:0"],
      ["::2:3:4:5:6:7:8", "0:2:3:4"],
      ["64:ff9b::203.0.113.5", "64:ff9b:0:0"],
      ["1:2:3::5:6:203.0.113.5", "1:2:3:0"],
      ["fe80::1%eth0", "fe80:0:0:0"],
      ["", UNREADABLE_ADDRESS],
      ["unknown", UNREADABLE_ADDRESS],
    ] as const) {
      assert.equal(addressNetwork(address), network, address);
    }
  });
});
