import { createRequire } from "node:module";
import { jestExpect } from "@jest/expect";
import { ModernFakeTimers } from "@jest/fake-timers";
import type { Config } from "@jest/types";
import { ModuleMocker } from "jest-mock";

/** The functions of one test file by which it declares its tests. */
type Declarations = Readonly<Record<string, (...args: never[]) => unknown>>;

const requireModule = createRequire(import.meta.url);
let declarations: Declarations = {};

/** Sets the functions of the file that runs next: jest makes others for each file. */
export function declareWith(ofFile: Declarations): void {
  declarations = ofFile;
}

/** Loads a module of jest's own again, which then has no state of an earlier test file. */
export function loadAgain(path: string): unknown {
  delete requireModule.cache[path];
  // Handlers that the module added for the earlier file.
  Reflect.deleteProperty(globalThis, Symbol.for("EVENT_HANDLERS"));
  return requireModule(path);
}

/** Modules that test files share import this once, and call what the file that runs has. */
function ofTheFile(name: string) {
  const current = () => declarations[name] as () => unknown;
  return new Proxy((): unknown => undefined, {
    apply: (_, self, args) => Reflect.apply(current(), self, args),
    get: (_, member) => Reflect.get(current(), member),
  });
}

const mocker = new ModuleMocker(globalThis);
const timers = new ModernFakeTimers({
  config: { fakeTimers: {} } as Config.ProjectConfig,
  global: globalThis,
});

/** Node's own servers and streams in the process wait by these. */
const ofNode = ["nextTick", "queueMicrotask", "setImmediate"] as const;

export { jestExpect as expect };
export const describe = ofTheFile("describe");
export const test = ofTheFile("test");
export const beforeAll = ofTheFile("beforeAll");
export const beforeEach = ofTheFile("beforeEach");
export const afterEach = ofTheFile("afterEach");
export const afterAll = ofTheFile("afterAll");
export const jest = {
  fn: mocker.fn.bind(mocker),
  spyOn: mocker.spyOn.bind(mocker),
  restoreAllMocks: () => mocker.restoreAllMocks(),
  useFakeTimers: ({ doNotFake = [], ...config }: Config.FakeTimersConfig = {}) =>
    timers.useFakeTimers({ ...config, doNotFake: [...ofNode, ...doNotFake] }),
  useRealTimers: () => timers.useRealTimers(),
  setSystemTime: timers.setSystemTime.bind(timers),
  advanceTimersByTime: timers.advanceTimersByTime.bind(timers),
  advanceTimersByTimeAsync: timers.advanceTimersByTimeAsync.bind(timers),
};
