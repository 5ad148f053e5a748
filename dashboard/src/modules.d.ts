declare module "virtual:operation/*" {
  /** The JSON Schema of the input of the operation. */
  const schema: import("./api/schema.ts").Schema;
  export default schema;
}
