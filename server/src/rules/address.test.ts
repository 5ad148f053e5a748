import assert from "node:assert/strict";
import { isIPv4 } from "node:net";
import { describe, it } from "node:test";
import fc from "fast-check";
import { addressList, isCidr, isListed } from "./address.ts";

describe("isCidr", () => {
  it("takes addresses and CIDRs of both families, which a list can be made of", () => {
    const addresses = fc.oneof(fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(addresses, fc.option(fc.nat(128)), (address, bits) => {
        const text = bits === null ? address : `${address}/${bits}`;
        assert.equal(isCidr(text), bits === null || bits <= (isIPv4(address) ? 32 : 128), text);
        if (isCidr(text)) assert(isListed(addressList([text])!, address), text);
      }),
    );
  });

  it("takes nothing else", () => {
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
