import { findSourceMap } from "node:module";
import type { JestEnvironmentConfig } from "@jest/environment";
import { jest } from "./globals.ts";
import { pathOfModule } from "./modules.ts";

/**
 * The process itself as the environment of a test file. Variables of the environment and globals that a file sets or
 * changes are restored after it.
 */
export class ProcessEnvironment {
  readonly global = globalThis;
  readonly fakeTimers = null;
  readonly fakeTimersModern = null;
  /** The file evaluates each module of the repository for itself: `@jest-environment-options {"ownModules": true}`. */
  readonly ownModules: boolean;
  readonly #environment = { ...process.env };
  readonly #globals = new Map(
    Reflect.ownKeys(globalThis).map((key) => [key, Reflect.getOwnPropertyDescriptor(globalThis, key)]),
  );
  readonly #exit = process.exit;

  constructor({ projectConfig }: JestEnvironmentConfig) {
    this.ownModules = projectConfig.testEnvironmentOptions.ownModules === true;
  }

  async setup(): Promise<void> {
    Error.prepareStackTrace = stackOf;
  }

  async teardown(): Promise<void> {
    jest.useRealTimers();
    // jest replaces it for each file.
    process.exit = this.#exit;
    for (const name of Object.keys(process.env)) if (!(name in this.#environment)) delete process.env[name];
    Object.assign(process.env, this.#environment);
    for (const key of Reflect.ownKeys(globalThis)) this.#restore(key);
  }

  readonly exportConditions = () => ["node", "node-addons"];
  readonly getVmContext = () => null;

  /** Modules that files share keep what they know by symbols, so that these stay. */
  #restore(key: string | symbol): void {
    const former = this.#globals.get(key);
    const { configurable, value, get } = Reflect.getOwnPropertyDescriptor(globalThis, key) ?? {};
    if (typeof key === "symbol" || !configurable) return;
    if (former === undefined) Reflect.deleteProperty(globalThis, key);
    else if (former.value !== value || former.get !== get) Reflect.defineProperty(globalThis, key, former);
  }
}

const globalsModule = import.meta.resolve("./globals.ts");

/** Names files by their paths, and lines of JSX as they are in the source. */
function stackOf(error: Error, frames: NodeJS.CallSite[]): string {
  // A test's place is where its file declares it.
  const ofFiles = frames.filter((frame) => frame.getFileName() !== globalsModule);
  const lines = ofFiles.map((frame) => {
    const [url, line, column] = [frame.getFileName(), frame.getLineNumber(), frame.getColumnNumber()];
    if (!url || !line || !column) return `    at ${frame}`;
    const origin = findSourceMap(url)?.findOrigin(line, column);
    const at =
      origin && "lineNumber" in origin ? `${origin.lineNumber}:${origin.columnNumber}` : `${line}:${column}`;
    return `    at ${String(frame).replace(`${url}:${line}:${column}`, `${pathOfModule(url)}:${at}`)}`;
  });
  return [`${error.name}: ${error.message}`, ...lines].join("\n");
}

export default ProcessEnvironment;
