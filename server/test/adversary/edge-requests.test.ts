/** What an edge passes on: callers whose requests are made to be misread, and homes that answer anything. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { eventually, launchEdge, makeFolder, type Server, start, startEdge } from "../process.ts";
import { HostileHome } from "./hostile-home.ts";

const undo: (() => void | Promise<void>)[] = [];
let folder: string;
let home: Server;
let hostile: HostileHome;
let edge: Server;
let rootKey: string;
let key: string;

before(async () => {
  folder = makeFolder({ after: (task) => void undo.push(task) });
  home = await start({ directory: folder });
  const created = await home.ok("rootKeys.createRootKey", { name: "edge", permissions: ["replicas.*.open"] });
  rootKey = created.key;
  hostile = await HostileHome.open(home);
  edge = await startEdge(hostile, rootKey, { directory: folder });
  const { apiId } = await home.ok("apis.createApi", { name: "images" });
  key = (await home.ok("keys.createKey", { apiId })).key;
});
after(async () => {
  hostile.close();
  for (const task of undo) await task();
});

/** Sends bytes to the edge, and returns what it answers until it ends the connection, or until the text `last`. */
async function sent(bytes: string, last: string): Promise<string> {
  const { hostname, port } = new URL(edge.address);
  const socket = connect(Number(port), hostname);
  let answered = "";
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    answered += chunk.toString("latin1");
    if (answered.includes(last)) socket.destroy();
  });
  socket.write(bytes, "latin1");
  await eventually("the edge to answer", () => socket.closed);
  return answered;
}

/** That of a node, at the end of an answer. */
const END = "end of the answer";

const isServing = async () => assert.equal((await edge.ok("keys.verifyKey", { key }, null)).code, "VALID");

describe("a request that an edge passes on", () => {
  const inner =
    "POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.6\r\nContent-Length: 2\r\n\r\n{}" +
    // The rest would wait for the request of the next caller.
    "POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
  const chunked = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
  const forms = {
    "in chunks": ["Transfer-Encoding: chunked", chunked],
    "in chunks that belong to the connection": ["Connection: transfer-encoding\r\nTransfer-Encoding: chunked", chunked],
    "with a length": [`Content-Length: ${inner.length}`, inner],
    "with a length that belongs to the connection": [
      `Connection: content-length\r\nContent-Length: ${inner.length}`,
      inner,
    ],
  } as const;
  for (const [form, [head, body]] of Object.entries(forms)) {
    it(`is one request for home, also if its body ${form} looks like others (rule 220)`, async () => {
      hostile.answer = ({ path }, response) => response.end(`${path} ${END}`);
      for (const method of ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "PATCH", "PUT", "POST", "PROPFIND"]) {
        hostile.seen.length = 0;
        const answer = await sent(
          `${method} /v2/first HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n${body}`,
          method === "HEAD" ? "\r\n\r\n" : END,
        );
        assert.match(answer, /^HTTP\/1\.1 200 /, method);
        // It takes the same connection to home.
        assert.match(await sent("GET /v2/second HTTP/1.1\r\nHost: x\r\n\r\n", END), /\/v2\/second/, method);
        const seen = hostile.seen.map(({ method: asked, path, body: text }) => [asked, path, text]);
        assert.deepEqual(seen, [
          [method, "/v2/first", inner],
          ["GET", "/v2/second", ""],
        ]);
        assert.deepEqual(
          hostile.seen.map(({ headers }) => headers["x-forwarded-for"]),
          ["127.0.0.1", "127.0.0.1"],
        );
      }
    });
  }

  it("ends its connection if home answers before the body has arrived, and the caller gets the answer", async () => {
    hostile.rejects = (path, response) => {
      if (path !== "/v2/rejected") return false;
      response.writeHead(413, { "x-request-id": "req_a" }).end(END);
      return true;
    };
    const length = 20_000_000;
    const head = `POST /v2/rejected HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`;
    // The client reads no answer before it has sent the request.
    const answer = await sent(head + " ".repeat(length), "never");
    assert.match(answer, /^HTTP\/1\.1 413 .*\r\nConnection: close\r\n/s);
    assert(answer.endsWith(END));
    assert.equal(answer.split("HTTP/1.1").length, 2);
    hostile.rejects = () => false;
    await isServing();
  });

  it("keeps nobody from home while its caller sends no more (rule 222)", async () => {
    hostile.answer = (_, response) => response.end(END);
    const { hostname, port } = new URL(edge.address);
    const slow: Socket[] = [];
    let answered = 0;
    for (let i = 0; i < 600; i++) {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {}).on("data", () => answered++);
      slow.push(socket);
      await once(socket, "connect");
      socket.write("POST /v2/keys.createKey HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{");
    }
    // The oldest ones made room.
    await eventually("the others to make room", () => answered >= 600 - 512);
    for (let i = 0; i < 5; i++) {
      assert.match(
        await sent("POST /v2/apis.createApi HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", END),
        / 200 /,
      );
    }
    assert(answered < 150, `${answered} requests were ended`);
    for (const socket of slow) socket.destroy();
    await isServing();
  });
});

describe("an answer of home (rule 221)", () => {
  const ok = "HTTP/1.1 200 OK\r\n";
  const short = "Content-Length: 2\r\n\r\n{}";
  const answers = {
    "the status 0": `HTTP/1.1 000 No\r\n${short}`,
    "the status 99": `HTTP/1.1 099 No\r\n${short}`,
    "the status 999": `HTTP/1.1 999 No\r\n${short}`,
    "another protocol": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n{}",
    "a hint before it": `HTTP/1.1 103 Early Hints\r\n\r\n${ok}${short}`,
    "content that its status forbids": `HTTP/1.1 204 No Content\r\n${short}`,
    "a redirection": `HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n${short}`,
    "a control character": `${ok}X-A: a\u0001b\r\n${short}`,
    "a character that is not ASCII": `${ok}X-A: M\u00fcller\r\nX-Request-Id: \u00fc\r\n${short}`,
    "names of a prototype": `${ok}__proto__: a\r\nconstructor: b\r\n${short}`,
    "two lengths": `${ok}Content-Length: 3\r\n${short}`,
    "a length and chunks": `${ok}Transfer-Encoding: chunked\r\n${short}`,
    "more than its length": `${ok}${short}{}{}`,
    "another answer after it": `${ok}${short}${ok}${short}`,
    "a head of a megabyte": `${ok}X-A: ${"a".repeat(1_000_000)}\r\n${short}`,
    "no HTTP": "no\r\n\r\n",
    nothing: "",
  };
  for (const [what, bytes] of Object.entries(answers)) {
    it(`may have ${what}: the caller gets an answer or an end, and others their answers`, async () => {
      hostile.answer = (_, response) => {
        response.socket?.end(bytes, "latin1");
      };
      const body = JSON.stringify({ key });
      const length = `Content-Length: ${body.length}`;
      const call = `POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nContent-Type: application/json\r\n${length}\r\n`;
      for (const request of [
        "GET /v2/other HTTP/1.1\r\nHost: x\r\n\r\n",
        // In the fast lane, and in that of Node.
        `${call}\r\n${body}`,
        `${call}Expect: 100-continue\r\n\r\n${body}`,
      ]) {
        assert.match(`${await sent(request, "}")}`, /^$|^HTTP\/1\.1 (?:100|200|204|302|503) /);
        await isServing();
      }
    });
  }

  it("to a call is not read without end (rule 221)", async () => {
    let written = 0;
    hostile.answer = (_, response) => {
      const piece = Buffer.alloc(64 * 1024, 32);
      const write = () => {
        if (response.destroyed) return;
        written += piece.length;
        response.write(piece, () => setImmediate(write));
      };
      write();
    };
    const call = `POST /v2/keys.verifyKey HTTP/1.1\r\nHost: x\r\nIdempotency-Key: b\r\nContent-Length: 2\r\n\r\n{}`;
    assert.match(await sent(call, "}"), /^HTTP\/1\.1 503 /);
    assert(written < 32 * 1024 * 1024, `${written} bytes`);
    await isServing();
  });
});

describe("the Unix socket of an edge (rule 223)", () => {
  async function failsAt(path: string): Promise<string> {
    const failed = launchEdge(home, rootKey, {
      directory: folder,
      args: ["--socket", path],
      settings: { DATA_DIR: join(folder, "other") },
    });
    await eventually("the end of the edge", () => {
      assert.doesNotMatch(failed.stdout, /the edge is listening/);
      return failed.hasEnded;
    });
    assert.equal((await failed.ended).code, 1);
    return failed.stderr;
  }

  it("does not take the place of one whose process is too busy to answer", async () => {
    const path = join(folder, "busy.sock");
    const code = `require("net").createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => console.log("."))`;
    const busy = spawn(process.execPath, ["--eval", code], { stdio: ["ignore", "pipe", "inherit"] });
    await once(busy.stdout, "data");
    busy.kill("SIGSTOP");
    const waiting = Array.from({ length: 4 }, () => connect(path).on("error", () => {}));
    assert.match(await failsAt(path), /another process may listen there \(EAGAIN\)/);
    assert(existsSync(path));
    for (const socket of waiting) socket.destroy();
    busy.kill("SIGKILL");
    await once(busy, "exit");
    // Nobody listens there any more.
    const other = await startEdge(home, rootKey, {
      directory: folder,
      args: ["--socket", path],
      settings: { DATA_DIR: join(folder, "other") },
    });
    const link = join(folder, "link.sock");
    symlinkSync(path, link);
    assert.match(await failsAt(link), /there is something else/);
    await other.kill("SIGKILL");
    assert.match(await failsAt(link), /there is something else/);
    assert(existsSync(link));
  });

  it("is that of one edge if several start at once after a kill (rule 230)", async () => {
    const path = join(folder, "left.sock");
    const begin = (n: number) =>
      launchEdge(home, rootKey, {
        directory: folder,
        args: ["--socket", path],
        settings: { DATA_DIR: join(folder, `other-${n}`) },
      });
    const isListening = ({ stdout }: Server) => stdout.includes("the edge is listening");
    const first = begin(0);
    await eventually("the first edge", () => isListening(first));
    await first.kill("SIGKILL");
    assert(existsSync(path));
    const edges = [1, 2, 3].map(begin);
    await eventually("each edge to listen or to end", () => edges.every((one) => isListening(one) || one.hasEnded));
    const [winner, ...others] = edges.filter((one) => !one.hasEnded);
    assert(winner !== undefined && others.length === 0, edges.map(({ output }) => output).join("\n"));
    for (const one of edges) if (one !== winner) assert.match(one.stderr, /another edge listens there/);
    const socket = connect(path);
    await once(socket, "connect");
    socket.destroy();
    await winner.kill("SIGTERM");
    assert(!existsSync(path) && !existsSync(`${path}.lock`));
  });

  it("does not take the place of a file", async () => {
    const path = join(folder, "file.sock");
    writeFileSync(path, "precious");
    assert.match(await failsAt(path), /there is something else/);
    assert(existsSync(path));
  });
});
