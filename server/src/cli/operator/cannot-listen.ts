import { OperatorError } from "../../log/operator-error.ts";
import type { Config } from "../../platform/config/config.ts";

type Listening = Pick<Config, "host" | "port" | "metrics"> & { readonly grpc: Pick<Config["grpc"], "port"> };

/** The error of an address on which a process cannot listen. It names the setting and the remedy. Other errors stay as they are. */
export function cannotListen(config: Listening, error: unknown): unknown {
  const { code = "", syscall = "", message } = error as NodeJS.ErrnoException;
  if (!["listen", "bind", "getaddrinfo"].includes(syscall)) return error;
  const { name, value, address, twin } = settingOf(config, error as ListenError);
  const reasons: Record<string, string> = {
    EADDRINUSE:
      twin === undefined
        ? `another process listens on ${address}. Stop it, or choose another port`
        : `${twin} has the same port. Choose another one`,
    EACCES: "this account may not listen on that port. Choose a port from 1024 upwards",
    EADDRNOTAVAIL: "this machine does not have that address. Give one of its addresses, or 0.0.0.0 for all of them",
    ENOTFOUND: "this name does not resolve to an address",
    EAI_AGAIN: "this name does not resolve to an address",
  };
  return new OperatorError(`LATCHKEY_${name}=${value}: ${reasons[code] ?? message} (${code})`, { cause: error });
}

/** `listen` has the port that was tried, `getaddrinfo` the name. */
type ListenError = NodeJS.ErrnoException & { readonly port?: number; readonly hostname?: string };

interface Tried {
  readonly name: string;
  readonly value: string;
  readonly address: string;
  /** Another setting with the same port. */
  readonly twin?: string | undefined;
}

function settingOf({ host, port, metrics, grpc }: Listening, { code, port: tried, hostname }: ListenError): Tried {
  const isOfPort = code === "EADDRINUSE" || code === "EACCES";
  if (typeof metrics === "object" && (hostname === undefined ? tried === metrics.port : hostname === metrics.host)) {
    const address = `${metrics.host}:${metrics.port}`;
    // The listener of the metrics is opened first, so it has the address if both settings name one.
    if (metrics.host !== host || ![port, grpc.port].includes(tried))
      return { name: "METRICS", value: address, address };
    return { name: "METRICS", value: address, address, twin: tried === port ? "LATCHKEY_PORT" : "LATCHKEY_GRPC_PORT" };
  }
  // That of gRPC comes before that of the service.
  if (isOfPort && tried === grpc.port) {
    const twin = tried === port ? "LATCHKEY_PORT" : undefined;
    return { name: "GRPC_PORT", value: String(tried), address: `${host}:${tried}`, twin };
  }
  if (isOfPort) return { name: "PORT", value: String(port), address: `${host}:${port}` };
  return { name: "HOST", value: host, address: host };
}
