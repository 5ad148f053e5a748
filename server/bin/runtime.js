import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { isatty } from "node:tty";

/** The first release that strips types, caches compiled modules and opens SQLite without a warning. */
const oldest = { major: 24, minor: 15 };

/** Whether this Node can run the service. */
export function isNewEnough(version = process.versions.node) {
  const [major, minor] = version.split(".").map(Number);
  return major > oldest.major || (major === oldest.major && minor >= oldest.minor);
}

/**
 * Runs `args` with a Node that is new enough, on the standard streams of this process, and exits with the same code or
 * signal. Without such a Node, prints what to do and exits with 1. `tied`: the program calls `stopWithLauncher`, so it
 * ends when this process ends, also by SIGKILL.
 */
export function runNode(args, { tied = false } = {}) {
  const program = findNode();
  if (!program) return printRequirement();
  const child = tied
    ? spawn(program, args, {
        stdio: ["inherit", "inherit", "inherit", "ipc"],
        env: { ...process.env, [TIED]: "1" },
        windowsHide: true,
      })
    : spawn(program, args, { stdio: "inherit", windowsHide: true });
  const hadTerminal = terminal().attached;

  const signals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"];
  for (const signal of signals) {
    process.on(signal, () => {
      if (!reachedTheGroup(signal, hadTerminal)) child.kill(signal);
    });
  }

  whenNpmEnds(() => child.kill("SIGTERM"));

  child.on("error", printRequirement);
  child.on("exit", (code, signal) => {
    if (!signal) return process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // If the signal does not end this process: the exit code that shells use for a signal.
    process.exitCode = 128 + constants.signals[signal];
  });
}

/** Signals SIGTERM to this process when npm, which started it as a script, was ended. */
export function stopWithNpm() {
  whenNpmEnds(() => process.kill(process.pid, "SIGTERM"));
}

/**
 * Calls `end` when npm, which started this process as a script, was ended. npm passes a signal on to the shell of the
 * script only, and the shell ends without passing it on. A script that starts something in the background (`latchkey serve &`)
 * may end first, so such a script does not count. Where another program of the script starts it in the background, an empty
 * `npm_lifecycle_event` in the environment turns this off.
 */
function whenNpmEnds(end) {
  const { npm_lifecycle_event: name, npm_lifecycle_script: script = "" } = process.env;
  if (!name || /(?<!&)&(?!&)/.test(script)) return;
  const shell = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(watch);
    end();
  }, PARENT_CHECK_MS);
  watch.unref();
}

const PARENT_CHECK_MS = 250;

/** The variable that marks a program as started by the launcher, and not by another parent with a channel. */
const TIED = "LAUNCHED_BY_LATCHKEY";

/** Signals SIGTERM to this process when the launcher that started it has ended, also by SIGKILL. */
export function stopWithLauncher() {
  const isTied = process.env[TIED] === "1";
  delete process.env[TIED];
  if (!isTied || !process.channel) return;
  process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
  // An open channel would keep a finished command running.
  process.channel.unref();
}

/** The path of this Node, or of the one that npm installed for this machine, if one is new enough. */
function findNode() {
  if (isNewEnough()) return process.execPath;
  const os = process.platform === "win32" ? "win" : process.platform;
  try {
    const manifest = createRequire(import.meta.url).resolve(`node-${os}-${process.arch}/package.json`);
    return join(dirname(manifest), "bin", os === "win" ? "node.exe" : "node");
  } catch {
    return undefined;
  }
}

/**
 * Whether the child got the signal directly. Ctrl-C, Ctrl-\ and a closed terminal signal every process of the group in
 * the foreground. If the launcher passed that signal on, it would arrive twice, and a second signal ends a service at
 * once. From a terminal, `kill -INT` must therefore name the child or the group; `kill -TERM` can also name the launcher.
 */
function reachedTheGroup(signal, hadTerminal) {
  if (signal === "SIGTERM") return false;
  const { attached, foreground } = terminal();
  return signal === "SIGHUP" ? hadTerminal && !attached : foreground;
}

/** Whether this process has a controlling terminal, and whether its group is in the foreground. */
function terminal() {
  try {
    // proc(5): after the name in parentheses come state, ppid, pgrp, session, tty_nr, tpgid.
    const stat = readFileSync("/proc/self/stat", "utf8");
    const [, , group, , tty, foregroundGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { attached: tty !== "0", foreground: group === foregroundGroup };
  } catch {
    const attached = [0, 1, 2].some((stream) => isatty(stream));
    return { attached, foreground: attached };
  }
}

function printRequirement() {
  const install = `install Node ${oldest.major}`;
  const orFetch = ["linux x64", "linux arm64", "win32 x64"].includes(`${process.platform} ${process.arch}`)
    ? ", or install again without `--omit=optional`, which brings one for this machine"
    : "";
  console.error(
    `Latchkey needs Node ${oldest.major}.${oldest.minor} or newer and this is ${process.versions.node}: ${install}${orFetch}.`,
  );
  process.exit(1);
}
