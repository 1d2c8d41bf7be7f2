import { type ComponentType, lazy } from "react";

/** Delay before a view is loaded again while the server is away, in milliseconds. */
const retryMs = 1_000;

/**
 * A component whose module is loaded when it is first shown. It waits for a server that is away, and fails if the
 * server is there but lacks the files: it then has another release.
 */
export function lazyView<P>(load: () => Promise<ComponentType<P>>) {
  return lazy(async () => ({ default: await loadPatiently(load) }));
}

async function loadPatiently<T>(load: () => Promise<T>): Promise<T> {
  for (let refusals = 0; ; ) {
    try {
      await loadFailedStyles();
      return await load();
    } catch (error) {
      // The server may have come back between the two requests, so one refusal is no proof.
      if (await isServerThere()) refusals += 1;
      if (refusals > 1)
        throw new Error(
          "The server lacks a file of this view, since it has another release: reload the page.",
          {
            cause: error,
          },
        );
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}

async function isServerThere(): Promise<boolean> {
  return await fetch("/", { method: "HEAD", cache: "no-store" }).then(
    ({ ok }) => ok,
    () => false,
  );
}

const failedStyles = new Set<HTMLLinkElement>();
document.addEventListener(
  "error",
  ({ target }) => {
    if (target instanceof HTMLLinkElement && target.rel === "stylesheet") failedStyles.add(target);
  },
  { capture: true },
);

/** Loads style sheets again. Vite asks for each of them once, and shows the view without it at the next try. */
async function loadFailedStyles(): Promise<void> {
  const loading = [...failedStyles].map((failed) => {
    failedStyles.delete(failed);
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.crossOrigin = "";
    link.href = failed.href;
    const loaded = new Promise((resolve, reject) => {
      link.onload = resolve;
      link.onerror = () => reject(new Error(`${link.href} cannot be loaded`));
    });
    failed.replaceWith(link);
    return loaded;
  });
  await Promise.all(loading);
}
