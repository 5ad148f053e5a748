#!/usr/bin/env node
// Runs the given arguments with a Node that is new enough for this repository.
import { runNode } from "./runtime.js";

runNode(process.argv.slice(2));
