import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../clock/system.ts";
import { openLog } from "../log/log.ts";
import { systemRandom } from "../random/system.ts";
import { openService, type Service } from "../service.ts";
import { banner } from "./banner.ts";
import type { Invocation } from "./output.ts";

/** Starts the service and keeps it until it is told to stop. */
export async function serve({ config, secrets, json }: Invocation): Promise<void> {
  // What is kept here is nobody else's to read.
  process.umask(0o077);
  const log = openLog(config.logLevel);
  const service = await openService(config, secrets, {
    clock: systemClock,
    random: systemRandom,
    log,
  });
  // The root key is the only thing here that cannot be made again, so it is handed over before anything can fail.
  if (service.issued && !process.stdout.isTTY) writeRootKey(config.dataDirectory, service);
  const { address, port } = await service.listen().catch(async (error: Error) => {
    if (service.issued) console.error(`The administrator's root key, shown this once: ${service.issued.key}`);
    await service.stop();
    throw error;
  });
  const url = `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
  service.events.started({ address: url, database: config.database.kind });
  const kept = rootKeyFile(config.dataDirectory);
  if (!json) {
    console.log(
      banner({
        url,
        issued: service.issued,
        rootKeyFile: existsSync(kept) ? kept : undefined,
        given: secrets.rootKey !== undefined,
      }),
    );
  }
  stopOnSignals(service);
}

/** Terminals and process supervisors tell the group and its parent alike, so one wish may arrive twice. */
const SAME_SIGNAL_MS = 500;

/** First signal: finish what is open. Second: now. */
function stopOnSignals(service: Service): void {
  let stoppingSince: number | undefined;
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (stoppingSince !== undefined) {
        if (systemClock.monotonic() - stoppingSince > SAME_SIGNAL_MS) process.exit(signal === "SIGINT" ? 130 : 143);
        return;
      }
      stoppingSince = systemClock.monotonic();
      service.events.stopping(signal);
      service.stop().then(
        () => {
          service.events.stopped();
          process.exit(0);
        },
        (error: unknown) => {
          console.error(error);
          process.exit(1);
        },
      );
    });
  }
}

/** Nobody watches: the root key goes into a file that only its owner may read, and never into a log. */
function writeRootKey(dataDirectory: string, { issued, events }: Service): void {
  const file = rootKeyFile(dataDirectory);
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
  writeFileSync(file, `${issued!.key}\n`, { mode: 0o600 });
  events.rootKeyWritten(file);
}

function rootKeyFile(dataDirectory: string): string {
  return join(dataDirectory, "root-key");
}
