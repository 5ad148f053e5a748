/** The service with settings of its own: `latchkey-with.ts <folder> <root key> NAME=value…`. */
import { systemClock } from "../../server/src/clock/system.ts";
import { readConfig } from "../../server/src/config/config.ts";
import { readSecrets } from "../../server/src/config/secrets.ts";
import { openLog } from "../../server/src/log/log.ts";
import { systemRandom } from "../../server/src/random/system.ts";
import { openService } from "../../server/src/service.ts";
import { present } from "./subject.ts";

const [folder, rootKey, ...more] = process.argv.slice(2) as [string, string, ...string[]];
const settings = new Map([
  ["DATA_DIR", folder],
  ["ROOT_KEY", rootKey],
  ["PORT", "0"],
  ["LOG_LEVEL", "warn"],
  ...more.map((setting): [string, string] => {
    const equals = setting.indexOf("=");
    return [setting.slice(0, equals), setting.slice(equals + 1)];
  }),
]);
const config = readConfig(settings);
const world = { clock: systemClock, random: systemRandom, log: openLog(config.logLevel) };
const service = await openService(config, readSecrets(settings), world);
const { port } = await service.listen();
present(`http://127.0.0.1:${port}`, () => service.stop());
