/** The suites of limits, credits and root keys again, with an edge between callers and the service (rules 176 and 178). */
process.env.LATCHKEY_TESTED_EDGE = "on";

await import("./scenarios/verify-limits.test.ts");
await import("./scenarios/ratelimits.test.ts");
await import("./scenarios/strict-limits.test.ts");
await import("./scenarios/shadow-limits.test.ts");
await import("./scenarios/overrides.test.ts");
await import("./scenarios/key-addresses.test.ts");
await import("./scenarios/key-permissions.test.ts");
await import("./scenarios/revoked-root-keys.test.ts");
