/** The listener for gRPC: health, limits, certificates, the age of connections and the stop. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { readConfig } from "../../src/platform/config/config.ts";
import { ConfigurationError } from "../../src/platform/config/env.ts";
import { MessageWriter } from "../../src/platform/grpc/protobuf.ts";
import { framed, GrpcClient } from "../grpc/client.ts";
import {
  callHeaders,
  DATA,
  END_HEADERS,
  END_STREAM,
  type Frame,
  frame,
  GOAWAY,
  HEADERS,
  rawPeer,
} from "../grpc/raw-peer.ts";
import { TestServer } from "../harness.ts";
import { eventually } from "../process.ts";

const HEALTH = "grpc.health.v1.Health/Check";
const SERVING = Buffer.from([8, 1]);
const NOT_SERVING = Buffer.from([8, 2]);
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const RESOURCE_EXHAUSTED = 8;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;

function serviceMessage(service: string): Buffer {
  const writer = new MessageWriter();
  writer.string(1, service);
  return writer.finish();
}

const all = serviceMessage("");

describe("the gRPC listener", () => {
  const server = new TestServer({ settings: { PORT: "0", GRPC_PORT: "0" } });
  let client: GrpcClient;
  before(async () => {
    await server.open();
    await server.service.listen();
    client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`);
  });
  after(async () => {
    await client.close();
    await server.close();
  });

  it("answers whether the service is ready, without a root key (rule 117)", async () => {
    const { status, body, headers } = await client.call(HEALTH, all);
    assert.deepEqual([status, body], [0, SERVING]);
    assert.equal(headers["content-type"], "application/grpc");
  });

  it("does not know the health of other services", async () => {
    const { status, message } = await client.call(HEALTH, serviceMessage("orders.v1.Orders"));
    assert.deepEqual([status, message], [NOT_FOUND, "There is no service 'orders.v1.Orders' here."]);
  });

  it("implements neither other methods nor Watch", async () => {
    for (const method of ["grpc.health.v1.Health/Watch", "a.B/C"]) {
      const { status, message } = await client.call(method, all);
      assert.deepEqual([status, message], [UNIMPLEMENTED, `There is no method /${method} here.`]);
    }
  });

  it("rejects what is not one message of protobuf", async () => {
    const rejects = async (raw: Buffer, status: number) =>
      assert.equal((await client.call(HEALTH, all, { raw })).status, status);
    await rejects(Buffer.alloc(0), INTERNAL);
    await rejects(Buffer.from([0, 0, 0]), INTERNAL);
    await rejects(framed(Buffer.from([10, 4, 97])), INVALID_ARGUMENT);
    await rejects(framed(Buffer.from([10, 2, 0xc3, 0x28])), INVALID_ARGUMENT);
    await rejects(framed(all, 1), UNIMPLEMENTED);
    await rejects(Buffer.concat([framed(all), framed(all)]), UNIMPLEMENTED);
    await rejects(framed(Buffer.alloc(2_000)), RESOURCE_EXHAUSTED);
    assert.equal((await client.call(HEALTH, all)).status, 0);
  });

  it("answers other content with the status of HTTP", async () => {
    const { headers } = await client.call(HEALTH, all, { headers: { "content-type": "application/json" } });
    assert.equal(headers[":status"], 415);
    const other = await client.call(HEALTH, all, { headers: { ":method": "PUT" } });
    assert.equal(other.headers[":status"], 405);
  });

  it("counts connections and calls in the metrics", async () => {
    const text = await server.scrape();
    assert.match(text, /^latchkey_grpc_connections 1$/m);
    assert.match(text, /^latchkey_grpc_calls 0$/m);
    assert.match(text, /^latchkey_grpc_refused_total 0$/m);
  });

  it("asks a connection to end after its age, and answers calls that were sent before (rule 118)", async () => {
    const { port } = server.service.grpcAddress!;
    const peer = await rawPeer(port);
    const goaways = () => peer.frames.filter(({ type }) => type === GOAWAY).map(({ payload }) => payload);
    const ask = async (stream: number) => {
      const headers = frame(HEADERS, END_HEADERS, stream, callHeaders(HEALTH));
      peer.socket.write(Buffer.concat([headers, frame(DATA, END_STREAM, stream, framed(all))]));
      const isEnd = ({ type, flags, stream: of }: Frame) =>
        type === HEADERS && of === stream && (flags & END_STREAM) > 0;
      await eventually(`the answer of ${stream}`, async () => peer.frames.some(isEnd));
      const answer = peer.frames.find(({ type, stream: of }) => type === DATA && of === stream);
      assert.deepEqual(answer?.payload, framed(SERVING));
    };
    await ask(1);
    await server.pass(4.4 * 60_000);
    await ask(3);
    assert.deepEqual(goaways(), []);

    let stream = 3;
    while (goaways().length === 0) {
      assert(stream < 200);
      await server.advance(1_000);
      // The last of them reaches the service after it has asked the peer to end.
      stream += 2;
      await ask(stream);
    }
    await server.pass(3_000);
    await peer.closed;
    const [first, second] = goaways();
    assert.deepEqual([first?.readUInt32BE(0), first?.readUInt32BE(4)], [2 ** 31 - 1, 0]);
    assert.deepEqual([second?.readUInt32BE(0), second?.readUInt32BE(4)], [stream, 0]);
    // The client of the other tests may be a tenth older than the age.
    await server.pass(66_000);
    await eventually("all connections to end", async () =>
      /^latchkey_grpc_connections 0$/m.test(await server.scrape()),
    );
  });

  it("ends a connection without a call after the time for headers", async () => {
    const silent = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`);
    await once(silent.session, "remoteSettings");
    const closed = once(silent.session, "close");
    await server.pass(22_000);
    await closed;
  });

  it("reports not to be serving during the drain, and finishes (rule 117)", async () => {
    const draining = await new TestServer({ settings: { PORT: "0", GRPC_PORT: "0" } }).open();
    await draining.service.listen();
    const address = `http://127.0.0.1:${draining.service.grpcAddress!.port}`;
    const peer = new GrpcClient(address);
    assert.deepEqual((await peer.call(HEALTH, all)).body, SERVING);
    const goaway = once(peer.session, "goaway");
    const stopped = draining.service.stop(5_000);
    const late = new GrpcClient(address);
    assert.deepEqual((await late.call(HEALTH, all)).body, NOT_SERVING);
    await goaway;
    const closed = late.session.destroyed ? undefined : once(late.session, "close");
    await draining.advance(5_000);
    await stopped;
    await closed;
    await draining.close();
  });
});

describe("the gRPC listener with TLS", () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-grpc-"));
  const file = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const issue = (name: string) => {
    openssl(
      "req",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      `${name}.key`,
      "-out",
      `${name}.csr`,
      "-subj",
      `/CN=${name}`,
    );
    openssl(
      "x509",
      "-req",
      "-in",
      `${name}.csr`,
      "-CA",
      "ca.pem",
      "-CAkey",
      "ca.key",
      "-CAcreateserial",
      "-days",
      "1",
      "-out",
      `${name}.pem`,
    );
  };
  let server: TestServer;
  before(async () => {
    openssl(
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      "ca.key",
      "-out",
      "ca.pem",
      "-days",
      "1",
      "-subj",
      "/CN=authority",
    );
    for (const name of ["server", "renewed", "client"]) issue(name);
    server = new TestServer({
      settings: {
        PORT: "0",
        GRPC_PORT: "0",
        GRPC_TLS_CERT: file("server.pem"),
        GRPC_TLS_KEY: file("server.key"),
        GRPC_TLS_CLIENT_CA: file("ca.pem"),
      },
    });
    await server.open();
    await server.service.listen();
  });
  after(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });

  const connect = (withCertificate: boolean) =>
    new GrpcClient(`https://127.0.0.1:${server.service.grpcAddress!.port}`, undefined, {
      ca: readFileSync(file("ca.pem")),
      checkServerIdentity: () => undefined,
      ...(withCertificate && { cert: readFileSync(file("client.pem")), key: readFileSync(file("client.key")) }),
    });

  it("takes clients with a certificate of the authority only", async () => {
    const known = connect(true);
    assert.deepEqual((await known.call(HEALTH, all)).body, SERVING);
    await known.close();
    const unknown = connect(false);
    assert.equal((await unknown.call(HEALTH, all)).status, -1);
  });

  it("uses a renewed certificate for new connections, and keeps the former one while the files do not fit", async () => {
    const nameOf = async () => {
      const client = connect(true);
      assert.equal((await client.call(HEALTH, all)).status, 0);
      const { subject } = (client.session.socket as import("node:tls").TLSSocket).getPeerCertificate();
      await client.close();
      return subject.CN;
    };
    copyFileSync(file("renewed.pem"), file("server.pem"));
    await server.pass(61_000);
    assert.equal(await nameOf(), "server");
    assert(server.logged.some(({ message }) => message.startsWith("the changed certificate for gRPC cannot be used")));
    copyFileSync(file("renewed.key"), file("server.key"));
    await server.pass(61_000);
    assert.equal(await nameOf(), "renewed");
  });
});

describe("the settings of gRPC", () => {
  it("are rejected when one lacks another", () => {
    const read = (settings: Record<string, string>) => () => readConfig(new Map(Object.entries(settings)));
    assert.equal(read({})().grpc.port, undefined);
    for (const settings of [
      { GRPC_PORT: "65536" },
      { GRPC_PORT: "0", GRPC_TLS_CERT: "a.pem" },
      { GRPC_PORT: "0", GRPC_TLS_KEY: "a.key" },
      { GRPC_PORT: "0", GRPC_TLS_CLIENT_CA: "ca.pem" },
      { GRPC_TLS_CERT: "a.pem", GRPC_TLS_KEY: "a.key" },
    ]) {
      assert.throws(read(settings), ConfigurationError);
    }
  });
});
