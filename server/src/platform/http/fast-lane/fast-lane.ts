import type { Socket } from "node:net";
import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { type AddressList, callerAddress } from "../../../../../engine/src/rules/address.ts";
import type { Operation } from "../../rpc/operation.ts";
import type { Rpc, RpcResponse } from "../../rpc/server.ts";
import { COUNTED_BYTES_MIN } from "../body-budget.ts";
import { decodeText } from "../metered.ts";
import { AnswerText } from "./answer-text.ts";
import { type Head, type KeptHead, KeptHeads } from "./kept-heads.ts";
import { readPlainHead } from "./plain-head.ts";
import { shareReads } from "./shared-reads.ts";

/** Calls of one connection that may wait for their answers before it stops reading. Other connections wait for all of them. */
const WAITING_MAX = 8;

export interface FastLaneOptions {
  rpc: Pick<Rpc, "call">;
  clock: Clock;
  /** The metered operations by path. */
  metered: ReadonlyMap<string, Operation>;
  trustedProxies: AddressList | null;
  /** Milliseconds for which an unused connection stays open after an answer. */
  keepAlive: Milliseconds;
  /** Milliseconds in which the first request must arrive. */
  firstRequest: Milliseconds;
  /** Whether each connection ends after its next answer. */
  isClosing(): boolean;
  /** Passes a connection to the ordinary server, which reads it from here on. */
  handOver(socket: Socket): void;
  /** Answers a connection on which no request arrived in time, and ends it. */
  rejectSilent(socket: Socket): void;
}

const LANE: unique symbol = Symbol("connection of the fast lane");
type LaneSocket = Socket & { [LANE]?: LaneConnection | undefined };
/** The socket of a listener, which is removed when its connection leaves. */
type ListenedSocket = Socket & { [LANE]: LaneConnection };

/**
 * Answers plain calls of metered operations without `node:http`, which costs more than a verification.
 *
 * A connection begins here. While each chunk that arrives is a sequence of whole requests of one strict form
 * (`readPlainHead`), they are answered here, in order. The body of the last one may arrive in the next chunk. The first
 * other byte ends that: the connection goes to the ordinary server for the rest of its time, with everything that is not
 * answered yet. So this code rejects nothing, and only Node's parser decides about anything unusual.
 */
export class FastLane {
  readonly options: FastLaneOptions;
  readonly #connections = new Set<LaneConnection>();
  #unwritten: LaneConnection[] = [];
  readonly texts: AnswerText;
  readonly heads = new KeptHeads();

  constructor(options: FastLaneOptions) {
    this.options = options;
    this.texts = new AnswerText(options.clock, options.keepAlive);
  }

  accept(socket: Socket): void {
    const connection = new LaneConnection(this, socket);
    this.#connections.add(connection);
    (socket as LaneSocket)[LANE] = connection;
  }

  /** Whether the connection is here and has a request without an answer, or an answer that its peer is reading. */
  isAnswering(socket: Socket): boolean {
    const connection = (socket as LaneSocket)[LANE];
    return connection?.isAnswering === true && !socket.writableNeedDrain;
  }

  /** Ends unused connections, and passes on those whose request is not complete. */
  close(): void {
    for (const connection of this.#connections) connection.closeIfUnused();
  }

  /** Writes the answers of this connection together with those of others, as `AnswerBatch` does. */
  writeSoon(connection: LaneConnection): void {
    if (this.#unwritten.push(connection) === 1) setImmediate(() => this.#write());
  }

  /** Removes a connection that is closed or belongs to the ordinary server. */
  leave(socket: Socket): void {
    const connection = (socket as LaneSocket)[LANE];
    if (connection === undefined) return;
    // Not deleted: that would slow down every later use of the socket by the ordinary server.
    (socket as LaneSocket)[LANE] = undefined;
    this.#connections.delete(connection);
    socket.off("data", onData).off("end", onEnd).off("error", onError).off("close", onClose).off("drain", onDrain);
    socket.setTimeout(0).off("timeout", onTimeout);
  }

  #write(): void {
    const connections = this.#unwritten;
    this.#unwritten = [];
    this.texts.renewDate();
    for (const connection of connections) connection.write();
  }
}

/** A connection in the lane. */
class LaneConnection {
  readonly socket: Socket;
  readonly #lane: FastLane;
  #hasAnswered = false;
  readonly #peer: string;
  /** The caller's address, if a request names no other. */
  readonly #address: string;
  /** The latest head: most clients repeat it byte for byte. */
  #latest: KeptHead | undefined;
  /** The latest other one: clients that hold and settle send two in turn. */
  #other: KeptHead | undefined;
  /** The calls that are not answered, in order. */
  #calls: Call[] = [];
  #willWrite = false;
  /** Whether the ordinary server gets the connection after the answers. */
  #isLeaving = false;
  /** Whether the peer has ended its side. */
  #hasEnded = false;
  /** The start of a plain request whose body has not arrived whole: the next chunk must complete it. */
  #partial: Buffer | undefined;

  constructor(lane: FastLane, socket: Socket) {
    this.#lane = lane;
    this.socket = socket;
    this.#peer = socket.remoteAddress ?? "";
    this.#address = callerAddress(this.#peer, undefined, lane.options.trustedProxies);
    socket.on("data", onData).on("end", onEnd).on("error", onError).on("close", onClose).on("drain", onDrain);
    shareReads(socket as LaneSocket, onRead);
    // The timers of the system, as in `node:http`.
    socket.setTimeout(lane.options.firstRequest).on("timeout", onTimeout);
  }

  get isAnswering(): boolean {
    return this.#calls.length > 0;
  }

  /** Reads a chunk. Its memory is used again after that. */
  read(received: Buffer): void {
    const { rpc } = this.#lane.options;
    const awaited = this.#partial;
    const chunk = awaited === undefined ? received : this.#complete(awaited, received);
    for (let position = 0; position < chunk.length; ) {
      if (this.#calls.length >= WAITING_MAX) {
        this.#keep(chunk.subarray(position));
        return;
      }
      const head = this.#readHead(chunk, position);
      if (head === null) {
        this.#passOn(chunk.subarray(position));
        return;
      }
      if (position + head.bytes > chunk.length) {
        // Many clients send the head and the body apart.
        if (awaited === undefined || position > 0) this.#await(chunk.subarray(position));
        else this.#passOn(chunk);
        break;
      }
      const body = decodeText(chunk.subarray(position + head.headBytes, position + head.bytes));
      position += head.bytes;
      const { operation, path, credentials, contentType, idempotencyKey, address = this.#address } = head;
      const request = { path, credentials, contentType, contentEncoding: undefined, idempotencyKey, body, address };
      const answer = rpc.call(operation, request);
      if (answer instanceof Promise) this.#wait(answer, path);
      else if (this.#calls.push({ path, answer }) === 1) this.#writeSoon();
    }
    if (this.#calls.length >= WAITING_MAX) this.socket.pause();
  }

  /** Leaves input in the stream until it may be read. */
  #keep(rest: Buffer): void {
    this.socket.pause();
    // At once: a peer that ends its side meanwhile would end the stream.
    this.socket.unshift(Buffer.from(rest));
  }

  #await(partial: Buffer): void {
    this.#partial = Buffer.from(partial);
    this.socket.setTimeout(this.#lane.options.firstRequest);
  }

  #complete(partial: Buffer, rest: Buffer): Buffer {
    this.#partial = undefined;
    const { keepAlive, firstRequest } = this.#lane.options;
    this.socket.setTimeout(this.#hasAnswered ? keepAlive : firstRequest);
    return Buffer.concat([partial, rest]);
  }

  #readHead(chunk: Buffer, position: number): Head | null {
    const latest = this.#latest;
    if (latest !== undefined && isRepeated(latest, chunk, position)) return latest;
    const other = this.#other;
    if (other !== undefined && isRepeated(other, chunk, position)) {
      this.#latest = other;
      this.#other = latest;
      return other;
    }
    const { heads } = this.#lane;
    const head = heads.find(chunk, position) ?? this.#parseHead(chunk, position);
    if (head === null) return null;
    const kept = heads.keep(head, chunk, position);
    if (kept !== undefined) {
      this.#other = latest;
      this.#latest = kept;
    }
    return head;
  }

  #parseHead(chunk: Buffer, position: number): Head | null {
    const plain = readPlainHead(chunk, position);
    const { metered, trustedProxies } = this.#lane.options;
    const operation = plain === null ? undefined : metered.get(plain.path);
    // Longer bodies count against the memory of bodies.
    if (plain === null || operation === undefined || plain.bodyBytes >= COUNTED_BYTES_MIN) return null;
    const { forwardedFor } = plain;
    return {
      ...plain,
      credentials: { authorization: plain.authorization },
      bytes: plain.headBytes + plain.bodyBytes,
      operation,
      address: forwardedFor === undefined ? undefined : callerAddress(this.#peer, forwardedFor, trustedProxies),
    };
  }

  #wait(answer: Promise<RpcResponse>, path: string): void {
    const call: Call = { path, answer: undefined };
    this.#calls.push(call);
    void answer.then((settled) => {
      call.answer = settled;
      if (this.#calls[0] === call) this.#writeSoon();
    });
  }

  #writeSoon(): void {
    if (this.#willWrite) return;
    this.#willWrite = true;
    this.#lane.writeSoon(this);
  }

  /** Writes the answers up to the first call that still runs. */
  write(): void {
    this.#willWrite = false;
    const { socket } = this;
    const { texts, options } = this.#lane;
    const isClosing = options.isClosing();
    let text = "";
    let written = 0;
    for (const { path, answer } of this.#calls) {
      if (answer === undefined) break;
      written++;
      text += texts.of(answer, path, isClosing);
      // Its answer says that it is the last.
      if (isClosing) break;
    }
    this.#calls = written === this.#calls.length ? [] : this.#calls.slice(written);
    if (!socket.writable) return;
    if (!this.#hasAnswered) {
      this.#hasAnswered = true;
      socket.setTimeout(options.keepAlive);
    }
    const hasRoom = socket.write(text, "latin1");
    const areAllAnswered = this.#calls.length === 0;
    if (isClosing || (this.#hasEnded && areAllAnswered && !this.#isLeaving)) socket.destroySoon();
    else if (this.#isLeaving && areAllAnswered) this.#leave();
    else if (hasRoom) this.resume();
    else socket.pause();
  }

  /** Passes the connection on once all that was read before these bytes is answered. */
  #passOn(rest: Buffer): void {
    this.#isLeaving = true;
    this.#partial = undefined;
    this.#keep(rest);
    if (this.#calls.length === 0) this.#leave();
  }

  #leave(): void {
    const { socket } = this;
    const partial = this.#partial;
    this.#lane.leave(socket);
    this.#lane.options.handOver(socket);
    socket.resume();
    if (partial === undefined) return;
    // A stream that has ended takes nothing back.
    socket.emit("data", partial);
    socket.emit("end");
  }

  /** Reads on if nothing prevents it. */
  resume(): void {
    const { socket } = this;
    if (!this.#isLeaving && this.#calls.length < WAITING_MAX && socket.isPaused() && !socket.writableNeedDrain) {
      socket.resume();
    }
  }

  end(): void {
    this.#hasEnded = true;
    if (this.#partial !== undefined) this.#isLeaving = true;
    if (this.#calls.length > 0) return;
    if (this.#isLeaving) this.#leave();
    else this.socket.end();
  }

  /** Nothing has been read or written for the time allowed. */
  timeOut(): void {
    if (this.isAnswering) return;
    const { socket } = this;
    if (this.#partial !== undefined) this.#passOn(this.#partial);
    else if (this.#hasAnswered) socket.destroy();
    else {
      this.#lane.leave(socket);
      this.#lane.options.rejectSilent(socket);
    }
  }

  closeIfUnused(): void {
    if (this.#partial !== undefined) this.#passOn(this.#partial);
    else if (!this.isAnswering) this.socket.destroy();
  }

  close(): void {
    this.#lane.leave(this.socket);
  }
}

/** Whether the chunk has this head at a position. */
function isRepeated({ text }: KeptHead, chunk: Buffer, position: number): boolean {
  const end = position + text.length;
  return chunk.length >= end && chunk.compare(text, 0, text.length, position, end) === 0;
}

interface Call {
  path: string;
  /** Undefined while the call runs. */
  answer: RpcResponse | undefined;
}

// One function for all connections: closures would take memory on each of them.

function onData(this: ListenedSocket, chunk: Buffer): void {
  this[LANE].read(chunk);
}

function onRead(this: LaneSocket, bytes: number, memory: Buffer): boolean {
  const chunk = memory.subarray(0, bytes);
  const connection = this[LANE];
  // The ordinary server may keep what it gets.
  if (connection === undefined) return this.push(Buffer.from(chunk));
  connection.read(chunk);
  return true;
}

function onEnd(this: ListenedSocket): void {
  this[LANE].end();
}

function onDrain(this: ListenedSocket): void {
  this[LANE].resume();
}

function onTimeout(this: ListenedSocket): void {
  this[LANE].timeOut();
}

/** The event "close" follows. */
function onError(): void {}

function onClose(this: ListenedSocket): void {
  this[LANE].close();
}
