/** The service with default settings on its own folder: `latchkey-server.ts <folder> <root key> [NAME=value]...`. */
import { systemClock } from "../../server/src/clock/system.ts";
import { readConfig } from "../../server/src/config/config.ts";
import { readSecrets } from "../../server/src/config/secrets.ts";
import { openLog } from "../../server/src/log/log.ts";
import { systemRandom } from "../../server/src/random/system.ts";
import { openService } from "../../server/src/service/service.ts";
import { connectToBench } from "./server-under-test.ts";

const [folder, rootKey, ...more] = process.argv.slice(2) as [string, string, ...string[]];
const settings = new Map([
  ["DATA_DIR", folder],
  ["ROOT_KEY", rootKey],
  ["PORT", "0"],
  ["LOG_LEVEL", "warn"],
  ...more.map((setting) => [setting.slice(0, setting.indexOf("=")), setting.slice(setting.indexOf("=") + 1)] as const),
]);
const config = readConfig(settings);
const dependencies = { clock: systemClock, random: systemRandom, log: openLog(config.logLevel) };
const service = await openService(config, readSecrets(settings), dependencies);
const { port } = await service.listen();
connectToBench(`http://127.0.0.1:${port}`, () => service.stop());
