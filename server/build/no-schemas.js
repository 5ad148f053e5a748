// Stands for Zod in database threads: declarations of operations can be loaded there, and nothing can be validated.

const validating = new Set(["parse", "parseAsync", "safeParse", "safeParseAsync", "decode", "encode"]);

/** Answers every property and every call with itself. */
const schema = new Proxy(() => {}, {
  get(_, name) {
    if (validating.has(name)) throw new Error("A database thread has no schemas: validate in the main thread");
    return schema;
  },
  apply: () => schema,
});

export { schema as z };
