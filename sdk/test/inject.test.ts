import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { it } from "node:test";
import express from "express";
// @ts-expect-error It has no types of its own; those of version 5 fit what is used here.
import express4 from "express-4";
import { inject } from "./inject.ts";

it("a call without a connection leaves other applications of Express in the process as they were", async () => {
  for (const make of [express, express4 as typeof express]) {
    const app = make().use((_, response) => void response.json({ ok: true }));
    assert.equal((await inject(app, { url: "/" })).payload, '{"ok":true}');
    const other = make().use((_, response) => void response.json({ ok: true }));
    const server = other.listen(0, "127.0.0.1");
    try {
      await once(server, "listening");
      const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      assert.equal(await answer.text(), '{"ok":true}');
    } finally {
      server.close();
      server.closeAllConnections();
    }
  }
});
