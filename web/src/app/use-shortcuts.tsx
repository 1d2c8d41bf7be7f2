import { useHotkeys } from "@mantine/hooks";
import { type ReactNode, Suspense, useEffect, useEffectEvent, useRef, useState } from "react";
import { useLocation } from "wouter";
import { lazyView } from "../components/lazy-view.ts";
import { tabs } from "./tabs.ts";

const Palette = lazyView(async () => (await import("./palette.tsx")).Palette);
const Shortcuts = lazyView(async () => (await import("./shortcuts.tsx")).Shortcuts);

/** Time in which the letter of a view follows G, in milliseconds. */
const sequenceMs = 1_000;

/** Keys of all views: search, the list of keys, and G with the letter of a view. */
export function useShortcuts(): { readonly search: () => void; readonly dialog: ReactNode } {
  const [opened, setOpened] = useState<"palette" | "shortcuts" | null>(null);
  const [, navigate] = useLocation();
  const begunAt = useRef(Number.NEGATIVE_INFINITY);
  useHotkeys([["mod+K", () => setOpened("palette")]], []);
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    const { target, key } = event;
    const isTyping =
      target instanceof HTMLElement &&
      (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
    if (isTyping || event.metaKey || event.ctrlKey || event.altKey || opened !== null) return;
    const isSequence = performance.now() - begunAt.current < sequenceMs;
    begunAt.current = key === "g" ? performance.now() : Number.NEGATIVE_INFINITY;
    const tab = isSequence ? tabs.find((each) => each.key === key) : undefined;
    if (tab !== undefined) navigate(tab.path);
    else if (key === "?") setOpened("shortcuts");
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKey(event);
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, []);
  const close = () => setOpened(null);
  return {
    search: () => setOpened("palette"),
    dialog: opened !== null && (
      <Suspense>
        {opened === "palette" ? <Palette onClose={close} /> : <Shortcuts onClose={close} />}
      </Suspense>
    ),
  };
}
