// Writes the bundle of a clone into the folder that is the argument.
import { bundle } from "./bundle.js";

await bundle(process.argv[2], { complete: false });
