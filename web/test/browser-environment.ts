import { ProcessEnvironment } from "@devmesh/testkit/jest/environment";
import { type DOMWindow, JSDOM } from "jsdom";

const address = "http://localhost/";
const { window } = new JSDOM("<!doctype html>", { url: address, pretendToBeVisual: true });

/** Globals of Node that nodes of jsdom's documents need in jsdom's form. */
const ofBrowser =
  /^(Event(Target)?|(Custom|Message|Close|Error)Event|File|DOMException|navigator|Storage|(local|session)Storage|(add|remove)EventListener|dispatchEvent)$/;

for (const name of membersOf(window)) {
  if (name in globalThis && !ofBrowser.test(name)) continue;
  const own: unknown = window[name];
  const bound = typeof own === "function" && /^[a-z]/.test(name) ? own.bind(window) : undefined;
  Object.defineProperty(globalThis, name, {
    configurable: true,
    get: () => bound ?? window[name],
    set: (value: unknown) =>
      void Object.defineProperty(globalThis, name, { configurable: true, writable: true, value }),
  });
}
for (const name of ["window", "self", "top", "parent"])
  Object.defineProperty(globalThis, name, { configurable: true, writable: true, value: globalThis });

/** A page of jsdom, which modules such as React bind to when they are evaluated: empty at the start of each file. */
export default class BrowserEnvironment extends ProcessEnvironment {
  constructor(...[config]: ConstructorParameters<typeof ProcessEnvironment>) {
    super(config);
    window.document.body.replaceChildren();
    window.localStorage.clear();
    window.sessionStorage.clear();
    window.history.replaceState(null, "", address);
  }
}

function membersOf(window: DOMWindow): Set<string> {
  const names: string[] = [];
  for (let from: object = window; from !== Object.prototype; from = Object.getPrototypeOf(from))
    names.push(...Object.getOwnPropertyNames(from));
  return new Set(names.filter((name) => name !== "constructor"));
}
