import { spawn } from "node:child_process";
import { constants } from "node:os";
import { relative, resolve } from "node:path";
import type { ServiceName } from "@devmesh/contracts/mesh";
import { environmentBeside } from "@devmesh/supervisor/mesh/environment-beside";
import { repository, serviceEntry } from "@devmesh/supervisor/mesh/service-process";
import { isServiceName } from "@devmesh/supervisor/mesh-arguments";
import { StartFailure } from "@devmesh/supervisor/process/errors";

// As in the launcher: files of a service are private to their owner.
process.umask(0o077);

try {
  const service = serviceOfThisFolder();
  const dataDir = resolve(repository, process.env.DATA_DIR || ".data");
  const env = await environmentBeside(dataDir, service, process.env);
  const child = spawn(
    process.execPath,
    ["--watch", "--disable-warning=ExperimentalWarning", serviceEntry(service, null)],
    {
      cwd: repository,
      env,
      stdio: "inherit",
    },
  );
  // The terminal sends Ctrl-C to the service, too; this process waits for its end.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill("SIGTERM"));
  child.once("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : (code ?? 1)));
} catch (error) {
  if (!(error instanceof StartFailure)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}

/** `npm run dev -w services/NAME` runs in the folder of the service. */
function serviceOfThisFolder(): ServiceName {
  const [folder, name, ...rest] = relative(repository, process.cwd()).split(/[\\/]/);
  if (folder === "services" && name && rest.length === 0 && isServiceName(name)) return name;
  throw new StartFailure("Run it for one service: npm run dev -w services/NAME");
}
