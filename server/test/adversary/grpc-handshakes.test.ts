/** Peers of gRPC that connect and leave their TLS handshake open. They keep nobody else from connecting, and nothing of theirs stays. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import { Certificates } from "../../src/platform/grpc/certificates.ts";
import { HANDSHAKES_MAX } from "../../src/platform/grpc/handshakes.ts";
import { openGrpcListener } from "../../src/platform/grpc/listener.ts";
import { InnocentCaller } from "../grpc/innocent-caller.ts";
import { TestServer } from "../harness.ts";
import { eventually } from "../process.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./hostile-endpoint.ts";

const CONNECTIONS_MAX = 100;
const HEADERS_TIMEOUT = 60_000;
/** The first bytes of a ClientHello. */
const HALF_HELLO = Buffer.from("160301020001", "hex");

describe("peers of gRPC that leave their handshakes open (rule 232)", () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-handshakes-"));
  const [certificate, key] = [join(folder, "certificate.pem"), join(folder, "key.pem")];
  writeFileSync(certificate, TEST_CERTIFICATE);
  writeFileSync(key, TEST_KEY);
  const settings = {
    PORT: "0",
    GRPC_PORT: "0",
    GRPC_TLS_CERT: certificate,
    GRPC_TLS_KEY: key,
    CONNECTIONS_MAX: String(CONNECTIONS_MAX),
    HEADERS_TIMEOUT: "60s",
  };
  const server = new TestServer({ settings });
  const sockets: Socket[] = [];
  let port: number;
  before(async () => {
    await server.open();
    await server.service.listen();
    port = server.service.grpcAddress!.port;
    await server.ok("ratelimits.limit", { namespace: "edge", identifier: "first", limit: 1, duration: 1_000, cost: 0 });
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  after(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });

  async function connectPeers(count: number, localAddress: string, to = port): Promise<readonly Socket[]> {
    for (let i = 0; i < count; i++) {
      const socket = connect({ port: to, host: "127.0.0.1", localAddress });
      sockets.push(socket);
      socket.on("error", () => {});
      await once(socket, "connect");
      if (i % 2 === 0) socket.write(HALF_HELLO);
    }
    return sockets;
  }
  const caller = () => new InnocentCaller(`https://127.0.0.1:${port}`, server.rootKey, { ca: TEST_CERTIFICATE });
  const ended = (some: readonly Socket[]) => some.filter(({ destroyed }) => destroyed).length;

  it("do not keep others from connecting, however many they are", async () => {
    await connectPeers(2 * (CONNECTIONS_MAX + HANDSHAKES_MAX), "127.0.0.2");
    const innocent = caller();
    let isAnswered = false;
    const answered = innocent.isAnswered(3).then(() => {
      isAnswered = true;
    });
    // Time passes for the service, so that slow ones give way.
    await eventually("the answers", async () => {
      if (!isAnswered) await server.pass(100);
      return isAnswered;
    });
    await answered;
    await innocent.close();
    // Their time is not over: they wait for their turns.
    assert.equal(ended(sockets.slice(-HANDSHAKES_MAX / 2)), 0);
    assert(ended(sockets) >= sockets.length - HANDSHAKES_MAX);
  });

  it("replace one another, and none of another network", async () => {
    const [patient] = (await connectPeers(1, "127.0.0.3")) as [Socket];
    await connectPeers(2 * HANDSHAKES_MAX, "127.0.0.2");
    await eventually("the first ones to end", async () => ended(sockets) >= HANDSHAKES_MAX);
    assert.equal(patient.destroyed, false);
  });

  it("end after the time that a request has for its headers", async () => {
    await connectPeers(20, "127.0.0.2");
    await server.pass(HEADERS_TIMEOUT + 1_000);
    await eventually("them to end", async () => ended(sockets) === 20);
  });

  it("do not delay the stop", async () => {
    const files = { certificate, key, clientAuthority: undefined };
    const listener = openGrpcListener({
      clock: new SimulatedClock(0),
      methods: [],
      limits: {
        connectionsMax: CONNECTIONS_MAX,
        connectionAge: 60_000,
        headersTimeout: 60_000,
        requestTimeout: 60_000,
        bodiesBytesMax: 1_000_000,
      },
      certificates: new Certificates(files, assert.ifError),
      chance: () => 0.5,
    });
    const address = await listener.listen("127.0.0.1", 0);
    await connectPeers(10, "127.0.0.2", address.port);
    await listener.close();
  });
});
