import type { Config } from "@jest/types";
import type { ProcessEnvironment } from "./environment.ts";
import { declareWith, loadAgain } from "./globals.ts";
import { importTestFile } from "./modules.ts";

const noSourceMaps: ReadonlyMap<string, string> = new Map();

/**
 * Loads test files as modules of Node, which all files of a process share, where jest's own has a registry of modules
 * for each file. jest names what it calls; what it also has, such as mocks of modules, no test uses.
 */
class SharedModules {
  readonly #all: boolean;

  constructor(
    _project: Config.ProjectConfig,
    environment: ProcessEnvironment,
    ...[, , , , , { watch, watchAll }]: [unknown, unknown, unknown, unknown, unknown, Config.GlobalConfig]
  ) {
    // A module that has changed since is evaluated again.
    this.#all = watch || watchAll || environment.ownModules;
  }

  readonly unstable_shouldLoadAsEsm = () => true;
  readonly unstable_importModule = (path: string) => importTestFile(path, this.#all);
  readonly requireInternalModule = loadAgain;
  readonly requireModule = loadAgain;
  readonly setGlobalsForRuntime = declareWith;
  readonly getSourceMaps = () => noSourceMaps;
  readonly getAllCoverageInfoCopy = () => undefined;
  readonly enterTestCode = () => {};
  readonly leaveTestCode = () => {};
  readonly teardown = () => {};
}

export { SharedModules as "module.exports" };
