import { ErrorReply } from "@redis/client";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { type Endpoint, endpointOf, nameOf, type RedisAddress, urlOf } from "./address.ts";
import { type Client, openClient } from "./client.ts";
import { RedisUnsuitable } from "./server-facts.ts";

/** How long one Sentinel may take to answer, including the connection. */
const ANSWER_TIMEOUT: Milliseconds = 1_000;

/** What a Sentinel says about its primary. */
interface Vote {
  readonly url: string;
  /** Raised by each failover, so the highest one is the latest. */
  readonly epoch: number;
}

/** The Sentinels that elect a primary. Their connections stay open between questions. */
export class Sentinels {
  readonly #address: RedisAddress & { kind: "sentinel" };
  readonly #clock: Clock;
  readonly #clients = new Map<Endpoint, Client>();
  #finding: Promise<string> | undefined;
  #isClosed = false;

  constructor(address: RedisAddress & { kind: "sentinel" }, clock: Clock) {
    this.#address = address;
    this.#clock = clock;
  }

  /**
   * The URL of the primary, by the Sentinel that knows of the latest failover. Rejects if none answers.
   *
   * @throws {RedisUnsuitable} if a server is not a Sentinel, or all that answer do not know the name.
   */
  findPrimary(): Promise<string> {
    this.#finding ??= this.#find().finally(() => {
      this.#finding = undefined;
    });
    return this.#finding;
  }

  close(): void {
    this.#isClosed = true;
    for (const client of this.#clients.values()) client.destroy();
    this.#clients.clear();
  }

  async #find(): Promise<string> {
    const { sentinels, primaryName } = this.#address;
    const asked = await Promise.allSettled(sentinels.map((sentinel) => this.#ask(sentinel)));
    const answers = asked.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const votes = answers.filter((vote) => vote !== undefined);
    if (votes.length > 0) return votes.reduce((best, vote) => (vote.epoch > best.epoch ? vote : best)).url;
    if (answers.length > 0) {
      throw new RedisUnsuitable(
        `no Sentinel knows a primary with the name ${primaryName}: give the name that \`sentinel monitor\` has in their configuration`,
      );
    }
    const reasons = asked.map((answer) => (answer as PromiseRejectedResult).reason as unknown);
    throw reasons.find((reason) => reason instanceof RedisUnsuitable) ?? reasons[0];
  }

  /** Undefined if this Sentinel does not know the primary. */
  async #ask(sentinel: Endpoint): Promise<Vote | undefined> {
    const client = this.#clientOf(sentinel);
    const limit = this.#clock.schedule(ANSWER_TIMEOUT, () => this.#drop(sentinel, client));
    try {
      if (!client.isOpen) await client.connect();
      const reply = (await client.sendCommand(["SENTINEL", "MASTER", this.#address.primaryName])) as string[];
      const fields = new Map(reply.flatMap((name, i) => (i % 2 === 0 ? [[name, reply[i + 1]!] as const] : [])));
      const primary = endpointOf(fields.get("ip") ?? "", Number(fields.get("port")), sentinel);
      return { url: urlOf(primary, this.#address.login), epoch: Number(fields.get("config-epoch")) };
    } catch (error) {
      if (error instanceof ErrorReply && /no such master/i.test(error.message)) return undefined;
      this.#drop(sentinel, client);
      if (!(error instanceof ErrorReply && /unknown command/i.test(error.message))) throw error;
      throw new RedisUnsuitable(
        `${nameOf(sentinel)} is not a Sentinel: give the ports of the Sentinels, usually 26379, or write redis:// for one server`,
      );
    } finally {
      limit.cancel();
      if (this.#isClosed) this.#drop(sentinel, client);
    }
  }

  #clientOf(sentinel: Endpoint): Client {
    const known = this.#clients.get(sentinel);
    if (known) return known;
    const client = openClient(urlOf(sentinel, this.#address.sentinelLogin), ANSWER_TIMEOUT);
    client.on("error", () => this.#drop(sentinel, client));
    this.#clients.set(sentinel, client);
    return client;
  }

  #drop(sentinel: Endpoint, client: Client): void {
    if (this.#clients.get(sentinel) === client) this.#clients.delete(sentinel);
    client.destroy();
  }
}
