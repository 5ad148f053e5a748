import { configSettings } from "./config.ts";
import { secretSettings } from "./secrets.ts";
import { listSettings, type Setting } from "./setting-kinds.ts";

/** Every setting of the service. */
export const settings: readonly Setting<unknown>[] = [...listSettings(configSettings), ...listSettings(secretSettings)];
