import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { isatty } from "node:tty";

/** The first release that strips types, caches compiled modules and opens SQLite without a warning. */
const oldest = { major: 24, minor: 15 };

/** Whether the Node that runs this line can run the service. */
export function isNewEnough(version = process.versions.node) {
  const [major, minor] = version.split(".").map(Number);
  return major > oldest.major || (major === oldest.major && minor >= oldest.minor);
}

/**
 * Runs a Node that is new enough with `args`, on our own standard streams, and ends as it ends: with its code or by its
 * signal. Where there is no such Node, says what to do and exits with 1. `tied`: the program calls `stopWithLauncher`, and
 * ends when this process does, however it ends.
 */
export function runNode(args, { tied = false } = {}) {
  const program = findNode();
  if (!program) return refuse();
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

  child.on("error", refuse);
  child.on("exit", (code, signal) => {
    if (!signal) return process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // For a signal that does not end us, the shell's way of saying it.
    process.exitCode = 128 + constants.signals[signal];
  });
}

/** Tells a program that its channel leads to a launcher, and not to some other parent. */
const TIED = "LAUNCHED_BY_LATCHKEY";

/** Ends this process as SIGTERM would when the launcher that started it is gone, also after SIGKILL. */
export function stopWithLauncher() {
  const isTied = process.env[TIED] === "1";
  delete process.env[TIED];
  if (!isTied || !process.channel) return;
  process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
  // A command that is done is not to wait for its launcher.
  process.channel.unref();
}

/** The running Node, else the one that npm installed for this machine, else nothing. */
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
 * Whether a signal has reached the child without us. Ctrl-C, Ctrl-\ and a terminal that goes away signal every process
 * of the group in the foreground; passed on as well, it would arrive a second time, which asks a service to drop
 * everything. From a terminal, `kill -INT` must therefore name the child or the group; SIGTERM may name either.
 */
function reachedTheGroup(signal, hadTerminal) {
  if (signal === "SIGTERM") return false;
  const { attached, foreground } = terminal();
  return signal === "SIGHUP" ? hadTerminal && !attached : foreground;
}

/** Whether we have a controlling terminal, and whether it is our group that its keys signal. */
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

function refuse() {
  const install = `install Node ${oldest.major}`;
  const orFetch = ["linux x64", "linux arm64", "win32 x64"].includes(`${process.platform} ${process.arch}`)
    ? ", or run `npm ci` without `--omit=optional`, which brings one for this machine"
    : "";
  console.error(
    `Latchkey needs Node ${oldest.major}.${oldest.minor} or newer and this is ${process.versions.node}: ${install}${orFetch}.`,
  );
  process.exit(1);
}
