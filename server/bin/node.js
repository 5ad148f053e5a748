#!/usr/bin/env node
// Runs a Node that is new enough for this repository, with the given arguments, whatever `node` is on this machine.
import { runNode } from "./runtime.js";

runNode(process.argv.slice(2));
