/** A server by its host, with brackets around an IPv6 address, and port. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** How to log in to a server. `userinfo` is as in a URL: `user:password`, or empty. */
export interface Login {
  readonly protocol: "redis" | "rediss";
  readonly userinfo: string;
}

/** Where counters are: one Redis, a cluster, or a primary that Sentinels elect. */
export type RedisAddress =
  | { readonly kind: "single"; readonly url: string }
  | { readonly kind: "cluster"; readonly seeds: readonly Endpoint[]; readonly login: Login }
  | {
      readonly kind: "sentinel";
      readonly sentinels: readonly Endpoint[];
      readonly primaryName: string;
      readonly login: Login;
      readonly sentinelLogin: Login;
    };

/** The address cannot be used. The message says what to give, and does not repeat the address, which has a password. */
export class InvalidRedisAddress extends Error {
  override readonly name = "InvalidRedisAddress";
}

const ENDPOINTS_MAX = 32;
const several = /^(rediss?)\+(cluster|sentinel):\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/([^/?#]*))?(?:\?([^#]*))?$/;
const clusterExample = "redis+cluster://user:password@host:6379,host:6379";
const sentinelExample = "redis+sentinel://user:password@host:26379,host:26379/name-of-the-primary";

/**
 * Parses `redis://` and `rediss://` addresses of one server, and with `+cluster` or `+sentinel` lists of servers.
 *
 * @throws {InvalidRedisAddress}
 */
export function parseRedisAddress(text: string): RedisAddress {
  const match = several.exec(text);
  if (!match) {
    if (/^rediss?\+cluster:/.test(text)) throw invalid(clusterExample);
    if (/^rediss?\+sentinel:/.test(text)) throw invalid(sentinelExample);
    if (URL.canParse(text) && /^rediss?:$/.test(new URL(text).protocol)) return { kind: "single", url: text };
    throw invalid(`redis://user:password@host:6379, ${clusterExample} or ${sentinelExample}`);
  }
  const [, protocol, kind, userinfo = "", list = "", path = "", query = ""] = match;
  const login: Login = { protocol: protocol as Login["protocol"], userinfo };
  if (kind === "cluster") {
    if (path !== "" || query !== "") throw invalid(`${clusterExample}, without anything after the last port`);
    return { kind, seeds: endpoints(list, 6379, login, clusterExample), login };
  }
  const parameters = new URLSearchParams(query);
  const [username = "", password] = ["sentinelUsername", "sentinelPassword"].map((name) => {
    const value = parameters.get(name) ?? undefined;
    parameters.delete(name);
    return value;
  });
  if (!/^(?:[^%]|%[0-9a-f]{2})+$/i.test(path) || parameters.size > 0) {
    throw invalid(`${sentinelExample}, and ?sentinelPassword=… if the Sentinels have a password of their own`);
  }
  const ownLogin = password === undefined ? "" : `${encodeURIComponent(username)}:${encodeURIComponent(password)}`;
  return {
    kind: "sentinel",
    sentinels: endpoints(list, 26379, login, sentinelExample),
    primaryName: decodeURIComponent(path),
    login,
    sentinelLogin: { protocol: login.protocol, userinfo: ownLogin },
  };
}

/** The URL of one server. */
export function urlOf({ host, port }: Endpoint, { protocol, userinfo }: Login): string {
  return `${protocol}://${userinfo === "" ? "" : `${userinfo}@`}${host}:${port}`;
}

/** The name of a server in logs and metrics. */
export function nameOf({ host, port }: Endpoint): string {
  return `${host}:${port}`;
}

/** Host and port of an address that a server has sent. An empty host means the server itself, `asked`. */
export function endpointOf(host: string, port: number, asked: Endpoint): Endpoint {
  if (host === "" || host === "?") return { host: asked.host, port };
  return { host: host.includes(":") ? `[${host}]` : host, port };
}

function endpoints(list: string, defaultPort: number, login: Login, example: string): Endpoint[] {
  const texts = list.split(",");
  if (texts.length > ENDPOINTS_MAX) throw invalid(`at most ${ENDPOINTS_MAX} servers: ${example}`);
  return texts.map((text) => {
    const url = `${login.protocol}://${login.userinfo === "" ? "" : `${login.userinfo}@`}${text.trim()}`;
    if (!URL.canParse(url) || new URL(url).hostname === "") throw invalid(example);
    const { hostname, port } = new URL(url);
    return { host: hostname, port: port === "" ? defaultPort : Number(port) };
  });
}

function invalid(example: string): InvalidRedisAddress {
  return new InvalidRedisAddress(`give an address such as ${example}`);
}
