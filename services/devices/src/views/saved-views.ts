import { randomUUID } from "node:crypto";
import type { devices } from "@devmesh/contracts/devices";
import { maxViews, type SavedView } from "@devmesh/contracts/model/saved-view";
import type { Implementation } from "@devmesh/service-kit/rpc/implementation";
import type { DeviceStore } from "../store/device-store.ts";

/** Options of the saved views. */
export interface SavedViewsOptions {
  readonly store: Pick<DeviceStore, "readViews" | "replaceViews">;
}

type ViewMethods = "listViews" | "createView" | "patchView" | "deleteView";

/** The saved views. A change is one compare-and-set of them all: a crash leaves no half of it. */
export function createSavedViews({
  store,
}: SavedViewsOptions): Pick<Implementation<typeof devices>, ViewMethods> {
  /** Begins again where another change came first, so that neither is lost. */
  async function change<T>(
    make: (views: readonly SavedView[]) => { readonly views: readonly SavedView[]; readonly made: T },
    signal: AbortSignal,
  ): Promise<T> {
    for (;;) {
      const before = await store.readViews(signal);
      const { views, made } = make(before.views);
      if (await store.replaceViews({ ...before, views }, signal)) return made;
    }
  }

  return {
    listViews: async (_input, { signal }) => [...(await store.readViews(signal)).views],

    createView: (input, ctx) =>
      change((views) => {
        if (views.some(({ name }) => name === input.name)) return ctx.fail("view_name_taken");
        if (views.length >= maxViews) return ctx.fail("too_many_views");
        const made = { id: randomUUID(), ...input };
        return { views: [...views, made], made };
      }, ctx.signal),

    patchView: ({ id, name, query }, ctx) =>
      change((views) => {
        const before = views.find((view) => view.id === id);
        if (before === undefined) return ctx.fail("view_not_found");
        if (views.some((view) => view !== before && view.name === name)) return ctx.fail("view_name_taken");
        const made = { id, name: name ?? before.name, query: query ?? before.query };
        return { views: views.map((view) => (view === before ? made : view)), made };
      }, ctx.signal),

    deleteView: ({ id }, ctx) =>
      change((views) => {
        const others = views.filter((view) => view.id !== id);
        return others.length === views.length ? ctx.fail("view_not_found") : { views: others, made: {} };
      }, ctx.signal),
  };
}
