/**
 * A Dockerfile without Docker: its steps run as a script in folders, and its result starts in a root folder of its own
 * that is read-only. For the instructions that `deploy/Dockerfile` uses; every other one is an error.
 */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, matchesGlob } from "node:path";
import { promisify } from "node:util";
import { busyness } from "../busyness.ts";
import { findFolder } from "../services/service.ts";

const STEP_MAX_MS = 120_000;

export interface Image {
  /** The file system. */
  readonly root: string;
  workdir: string;
  user: string;
  readonly environment: Record<string, string>;
  readonly volumes: string[];
  healthcheck: string[];
  entrypoint: string[];
  command: string[];
}

/** Why this machine cannot run the steps; undefined if it can. */
export function missingForImages(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    return "needs root on Linux, for a root folder of its own";
  try {
    execFileSync("unshare", ["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], { stdio: "pipe" });
    return undefined;
  } catch (error) {
    return `needs the right to mount: ${(error as Error).message.split("\n")[0]}`;
  }
}

/**
 * Builds `dockerfile` from the files `context`, in `folder`. `node` is the folder of the Node that stands for the one of
 * the base image.
 */
export async function buildImage(
  dockerfile: string,
  context: { root: string; files: readonly string[] },
  { folder, node }: { folder: string; node: string },
): Promise<Image> {
  const stages = new Map<string, Image>();
  let stage!: Image;
  for (const { name, text } of instructions(readFileSync(dockerfile, "utf8"))) {
    if (name === "FROM") {
      const [, , alias = "result"] = text.split(" ");
      stage = emptyStage(join(folder, alias));
      stages.set(alias, stage);
    } else if (name === "COPY") {
      copy(text, stage, stages, context);
    } else if (name === "RUN") {
      // An absolute path would name a file of this machine.
      assert.doesNotMatch(text, /(?<=^|\s)\/\w/, `RUN names an absolute path: ${text}`);
      const cwd = join(stage.root, stage.workdir);
      mkdirSync(cwd, { recursive: true });
      await promisify(execFile)("sh", ["-c", text], {
        cwd,
        env: { ...process.env, ...stage.environment, PATH: `${node}:${process.env.PATH}` },
        timeout: STEP_MAX_MS * busyness(),
      });
    } else {
      configure(stage, name, text);
    }
  }
  return stage;
}

/** Adds the shared libraries of a program from this machine. Returns their names. */
export function addLibraries(image: Image, program: string): string[] {
  const output = execFileSync("ldd", [join(image.root, program)], { encoding: "utf8" });
  const libraries = [...output.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path!);
  for (const library of libraries) {
    mkdirSync(join(image.root, dirname(library)), { recursive: true });
    copyFileSync(library, join(image.root, library));
  }
  return libraries.map((library) => basename(library));
}

/**
 * The command line that runs `command` in the image: its files are read-only except for its volumes, the account and the
 * variables are those of the image.
 */
export function inImage(image: Image, command: readonly string[], variables: Record<string, string>): string[] {
  const script = `
    set -e
    root=$1
    shift
    mount --bind "$root" "$root"
    for folder in dev proc; do mount --bind "/$folder" "$root/$folder"; done
    for volume in ${image.volumes.join(" ")}; do mount --bind "$root$volume" "$root$volume"; done
    mount -o remount,bind,ro "$root"
    exec env -i "$@"`;
  for (const folder of ["dev", "proc"]) mkdirSync(join(image.root, folder), { recursive: true });
  const settings = Object.entries({ ...image.environment, ...variables }).map(([name, value]) => `${name}=${value}`);
  const chroot = join(findFolder(["chroot"], ["/usr/sbin"])!, "chroot");
  return [
    "unshare",
    "--mount",
    "sh",
    "-c",
    script,
    "sh",
    image.root,
    ...settings,
    chroot,
    `--userspec=${image.user}`,
    image.root,
    ...command,
  ];
}

/** The files of `paths` that a `.dockerignore` leaves. */
export function inContext(paths: readonly string[], dockerignore: string): string[] {
  const patterns = dockerignore.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return paths.filter((path) => {
    const parts = path.split("/");
    const prefixes = parts.map((_, i) => parts.slice(0, i + 1).join("/"));
    let isIgnored = false;
    for (const pattern of patterns) {
      const glob = pattern.replace(/^!/, "");
      if (prefixes.some((prefix) => matchesGlob(prefix, glob))) isIgnored = !pattern.startsWith("!");
    }
    return !isIgnored;
  });
}

function* instructions(text: string): Generator<{ name: string; text: string }> {
  const joined = text.replace(/^#.*\n/gm, "").replace(/\\\n\s*/g, "");
  for (const line of joined.split("\n").filter((each) => each.trim() !== "")) {
    const [, name, rest] = /^([A-Z]+) (.*)$/.exec(line)!;
    yield { name: name!, text: rest! };
  }
}

function emptyStage(root: string): Image {
  mkdirSync(root, { recursive: true });
  return {
    root,
    workdir: "/",
    user: "0:0",
    environment: {},
    volumes: [],
    healthcheck: [],
    entrypoint: [],
    command: [],
  };
}

function configure(stage: Image, name: string, text: string): void {
  const list = (json: string) => JSON.parse(json) as string[];
  if (name === "WORKDIR") stage.workdir = text;
  else if (name === "USER") stage.user = text;
  else if (name === "VOLUME") stage.volumes.push(text);
  else if (name === "ENTRYPOINT") stage.entrypoint = list(text);
  else if (name === "CMD") stage.command = list(text);
  else if (name === "HEALTHCHECK") stage.healthcheck = list(/CMD (.*)/.exec(text)![1]!);
  else if (name === "ENV") {
    for (const [, variable, value] of text.matchAll(/(\w+)=(\S+)/g)) stage.environment[variable!] = value!;
  } else assert.equal(name, "EXPOSE", "an instruction that this test does not know");
}

/** COPY: files go into the target folder, the contents of a folder as well. */
function copy(
  text: string,
  stage: Image,
  stages: ReadonlyMap<string, Image>,
  context: { root: string; files: readonly string[] },
): void {
  const words = text.split(" ");
  const options = Object.fromEntries(
    words.filter((word) => word.startsWith("--")).map((word) => word.slice(2).split("=") as [string, string]),
  );
  const paths = words.filter((word) => !word.startsWith("--"));
  const target = paths.pop()!;
  const place = join(stage.root, target.startsWith("/") ? "" : stage.workdir, target);
  for (const path of paths) {
    if (options.from !== undefined) {
      const source = join(stages.get(options.from)!.root, path);
      cpSync(source, place, { recursive: true, verbatimSymlinks: true });
    } else {
      const chosen = context.files.filter((file) => path === "." || file === path);
      assert(chosen.length > 0, `COPY ${path}: the context has no such file`);
      for (const file of chosen) {
        const copied = path === "." ? join(place, file) : join(place, basename(file));
        mkdirSync(dirname(copied), { recursive: true });
        cpSync(join(context.root, file), copied);
      }
    }
  }
  if (options.chown === undefined) return;
  assert.deepEqual(readdirSync(place), [], "--chown of a folder with contents");
  chmodSync(place, Number.parseInt(options.chmod!, 8));
  const [user, group] = options.chown.split(":").map(Number);
  chownSync(place, user!, group!);
}
