import type { MeteredContext } from "../rpc/operation.ts";
import type { Principal } from "../rpc/principal.ts";
import type { Rpc } from "../rpc/server.ts";

/** What is known of the caller before its message is read. */
export interface GrpcCaller {
  /** The metadata `authorization`. */
  readonly authorization: string | undefined;
  /** The address of the peer of the connection. */
  readonly address: string;
}

/** A unary method as the listener calls it. */
export interface UnaryMethod {
  /** `package.Service/Method`. */
  readonly name: string;
  /** Longer messages are rejected before they are read whole. */
  readonly messageBytesMax: number;
  /** Answers with the bytes of the response. What it throws becomes a status; see `grpcError`. */
  answer(message: Buffer, caller: GrpcCaller): Uint8Array | Promise<Uint8Array>;
}

/** The context of a method. The root key in the metadata `authorization` was authenticated. */
export interface GrpcContext extends MeteredContext<never> {
  readonly principal: Principal;
}

/** Answers a message with the services of the program. Throws or rejects with a `Problem`. */
export type GrpcHandler<Services> = (
  message: Buffer,
  services: Services,
  context: GrpcContext,
) => Uint8Array | Promise<Uint8Array>;

/** A method that features declare: its caller needs a root key. */
export interface GrpcMethod<Services> {
  readonly name: string;
  readonly messageBytesMax: number;
  readonly handle: GrpcHandler<Services>;
}

/** Declares methods that use services of the main thread. `Services`: what the program has. */
export function grpcMethodsUsing<Services>() {
  return (name: string, { messageBytesMax }: { readonly messageBytesMax: number }) => ({
    handle: (handle: GrpcHandler<Services>): GrpcMethod<Services> => ({ name, messageBytesMax, handle }),
  });
}

/** The method as the listener calls it: its caller is authenticated, and the call counts for the workspace. */
export function withRootKey<Services>(
  { name, messageBytesMax, handle }: GrpcMethod<Services>,
  rpc: Pick<Rpc, "run">,
  services: Services,
): UnaryMethod {
  return {
    name,
    messageBytesMax,
    answer: (message, { authorization, address }) =>
      rpc.run({ name, credentials: { authorization }, address }, (context) => handle(message, services, context)),
  };
}
