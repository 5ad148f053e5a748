import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { cannotListen } from "./cannot-listen.ts";

const config = { host: "127.0.0.1", port: 3000, metrics: "on" as const, grpc: { port: 50051 } };

describe("the error of an address on which a process cannot listen", () => {
  const messageOf = (more: Partial<Parameters<typeof cannotListen>[0]>, error: object) =>
    (cannotListen({ ...config, ...more }, { syscall: "listen", ...error }) as Error).message;
  const inUse = (port: number) => ({ code: "EADDRINUSE", port });

  it("names the setting of the port that was tried", () => {
    const metrics = { host: "127.0.0.1", port: 9464 };
    const remedy = "Stop it, or choose another port (EADDRINUSE)";
    assert.equal(
      messageOf({ metrics }, inUse(3000)),
      `LATCHKEY_PORT=3000: another process listens on 127.0.0.1:3000. ${remedy}`,
    );
    assert.equal(
      messageOf({ metrics }, inUse(50051)),
      `LATCHKEY_GRPC_PORT=50051: another process listens on 127.0.0.1:50051. ${remedy}`,
    );
    assert.equal(
      messageOf({ metrics }, inUse(9464)),
      `LATCHKEY_METRICS=127.0.0.1:9464: another process listens on 127.0.0.1:9464. ${remedy}`,
    );
  });

  it("says that two settings have the same port", () => {
    assert.equal(
      messageOf({ grpc: { port: 3000 } }, inUse(3000)),
      "LATCHKEY_GRPC_PORT=3000: LATCHKEY_PORT has the same port. Choose another one (EADDRINUSE)",
    );
    assert.match(
      messageOf({ metrics: { host: "127.0.0.1", port: 3000 } }, inUse(3000)),
      /^LATCHKEY_METRICS=127\.0\.0\.1:3000: LATCHKEY_PORT has the same port/,
    );
  });

  it("names the setting of the host", () => {
    const unknown = { syscall: "getaddrinfo", code: "ENOTFOUND", hostname: "nowhere.invalid" };
    assert.match(
      messageOf({ host: "nowhere.invalid" }, unknown),
      /^LATCHKEY_HOST=nowhere\.invalid: this name does not/,
    );
    const metrics = { host: "nowhere.invalid", port: 9464 };
    assert.match(messageOf({ metrics }, unknown), /^LATCHKEY_METRICS=nowhere\.invalid:9464: this name does not/);
    const absent = { code: "EADDRNOTAVAIL", port: 3000 };
    assert.match(messageOf({ host: "1.2.3.4" }, absent), /^LATCHKEY_HOST=1\.2\.3\.4: this machine does not have/);
  });

  it("leaves other errors as they are", () => {
    const other = new Error("Another one");
    assert.equal(cannotListen(config, other), other);
  });
});
