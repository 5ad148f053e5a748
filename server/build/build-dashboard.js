// Writes the files of the dashboard into the folder that is the argument.
import { buildDashboard } from "./dashboard.js";

await buildDashboard(process.argv[2]);
