import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";

/** What an endpoint sends: first this, then that without end. */
interface Flood {
  first?: string;
  again?: string;
  /** Over TLS. With `again`, each byte is in a record of its own. */
  isEncrypted?: boolean;
  /** The endpoint accepts the connection and does not read from it. */
  isSilent?: boolean;
}

const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const REFUSAL = 'HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"valid":false}';
const EARLY_HINTS = "HTTP/1.1 103 Early Hints\r\n\r\n";

/** Endpoints that a hostile tenant could choose. */
export const floods: Readonly<Record<string, Flood>> = {
  "interim answers": { again: EARLY_HINTS },
  "100 Continue": { again: "HTTP/1.1 100 Continue\r\n\r\n" },
  "interim answers before a true one": { first: EARLY_HINTS.repeat(20_000) + REFUSAL },
  "interim answers between true ones": { again: EARLY_HINTS + REFUSAL },
  "a status line without end": { first: "HTTP/1.1 200 ", again: "x" },
  "a header without end": { first: "HTTP/1.1 200 OK\r\nx: ", again: "x" },
  "headers without end": { first: "HTTP/1.1 200 OK\r\n", again: "x: y\r\n" },
  "trailers without end": { first: `${CHUNKED}0\r\n`, again: "x: y\r\n" },
  "a chunk extension without end": { first: `${CHUNKED}1;`, again: "x" },
  "chunk extensions without end": { first: CHUNKED, again: `1;${"x".repeat(100)}\r\nx\r\n` },
  "chunks of one byte": { first: CHUNKED, again: "1\r\nx\r\n" },
  "a body without end": { first: "HTTP/1.1 200 OK\r\n\r\n", again: "x" },
  "an upgrade": { first: "HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", again: "x" },
  "more after an answer": { first: REFUSAL, again: "x" },
  "TLS records of one byte": { first: "HTTP/1.1 200 OK\r\n\r\n", again: "x", isEncrypted: true },
  "no answer": {},
  "no TLS handshake": { isSilent: true, isEncrypted: true },
};

/** An endpoint that sends a flood to whoever connects. */
export async function openHostileEndpoint(
  t: { after(undo: () => void): void },
  { first = "", again, isEncrypted = false, isSilent = false }: Flood,
): Promise<{ url: string; sockets: ReadonlySet<Socket> }> {
  const sockets = new Set<Socket>();
  const block = Buffer.from((again ?? "").repeat(Math.ceil(65_536 / (again ?? " ").length)));
  const serve = (socket: Socket | TLSSocket) => {
    socket.once("data", () => {
      if (first !== "") socket.write(first);
      if (again === undefined) return;
      // A write that waits for another one would get into the same record.
      const writeRecord = (): unknown => !socket.destroyed && socket.write(again, () => setImmediate(writeRecord));
      const writeBlocks = () => {
        while (!socket.destroyed && socket.write(block));
      };
      if (isEncrypted) return void writeRecord();
      socket.on("drain", writeBlocks);
      writeBlocks();
    });
  };
  const server =
    isEncrypted && !isSilent
      ? createTlsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, (socket) => {
          socket.on("error", () => {});
          serve(socket);
        })
      : createServer(isSilent ? undefined : serve);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `${isEncrypted ? "https" : "http"}://127.0.0.1:${port}/`, sockets };
}

/** A key for tests, which nothing else trusts. */
export const TEST_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnGqrB45/3HAIJfEB
gyQ7db/FP6YanPyVVYPMuMdUF4ahRANCAATY2kFRaUFJUMIitzlDvaedfwp+NEhG
dC6Utu27DPDapVSMKz0OoqGOfJJYOYqCsnB1Shp0mD1RAGmCpLnCoxZD
-----END PRIVATE KEY-----
`;

/** Its certificate, for 127.0.0.1, until 2126. */
export const TEST_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIUeb8uiOsy/tdIjjFnbXCqBNGHHOwwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzAxNTE1OFoYDzIxMjYxMDMw
MDE1MTU4WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATY2kFRaUFJUMIitzlDvaedfwp+NEhGdC6Utu27DPDapVSMKz0OoqGO
fJJYOYqCsnB1Shp0mD1RAGmCpLnCoxZDo28wbTAdBgNVHQ4EFgQUEgnK/+nMu66n
E4p09VjqO5pMcjowHwYDVR0jBBgwFoAUEgnK/+nMu66nE4p09VjqO5pMcjowDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3QwCgYIKoZI
zj0EAwIDRwAwRAIgX3VVt7Ek9WcUftXkzpgfiq7riO0LTxHmXFfZQDuItYwCID7S
vJDRArY2esvWqSBoFZtJYATQLZxoYgYyHY6gTFZO
-----END CERTIFICATE-----
`;
