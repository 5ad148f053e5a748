// Writes the files of the dashboard into the folder that is the argument, or to where a start from this clone looks for them.
import { buildDashboard, ensureDashboard } from "./dashboard.js";

const [, , folder] = process.argv;
if (folder === undefined) ensureDashboard();
else await buildDashboard(folder);
