import type { FastifyServerOptions } from "fastify";

const unexpected = () => {
  throw new Error("A route has a Fastify schema: declare it in the operation");
};

/** Options of a Fastify without schemas for its routes. Its compilers of schemas would take a tenth of the start. */
export const withoutSchemas: NonNullable<FastifyServerOptions["schemaController"]> = {
  compilersFactory: { buildValidator: unexpected, buildSerializer: unexpected },
};
