/** The program that `process.ts` starts: the bundle that it found, or the sources. Two folders below the server's. */
await import(process.env.TESTED_BUNDLE ?? "../src/main.ts");
