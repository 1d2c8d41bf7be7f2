import type { Notification } from "@devmesh/contracts/model/notification";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import type { StreamState } from "../live/lasting-stream.ts";
import { useDataFrames } from "../live/use-data-frames.ts";
import { recordsIn } from "./record-frames.ts";
import { emptyList, type RecordList, withRecords } from "./record-list.ts";
import { readEarlier, readLater } from "./record-pages.ts";
import { type RecordSelection, selects } from "./record-selection.ts";

/** The records of a selection as far as they are read. */
interface Records extends RecordList {
  readonly error: unknown;
  /** The newest ones are not there yet. */
  readonly isPending: boolean;
  readonly isReading: boolean;
  readonly stream: StreamState;
  readonly readMore: () => void;
  readonly readAgain: () => void;
}

/** Reads records backwards from the newest; while `live`, those that are stored meanwhile come on top. Keep the identity of `selection`. */
export function useRecords(selection: RecordSelection, live: boolean): Records {
  const api = useApi();
  const [list, setList] = useState(emptyList);
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(true);
  const [isReading, setReading] = useState(false);
  const [stream, setStream] = useState<StreamState>("connecting");
  const [attempt, setAttempt] = useState(0);
  const current = useRef(emptyList);
  const ending = useRef(new AbortController());
  const reading = useRef(false);

  const show = useCallback((next: RecordList) => {
    current.current = next;
    setList(next);
  }, []);
  const readAgain = useCallback(() => setAttempt((before) => before + 1), []);

  const readMore = useCallback(async () => {
    const { signal } = ending.current;
    const { records, hasEarlier, isFull } = current.current;
    if (reading.current || !hasEarlier || isFull) return;
    reading.current = true;
    setReading(true);
    try {
      const page = await readEarlier(api, selection, records.at(-1) ?? null, signal);
      if (signal.aborted) return;
      show(withRecords(current.current, page.records, page.hasEarlier));
      setError(null);
      setPending(false);
    } catch (failure) {
      if (signal.aborted) return;
      setError(failure);
      setPending(false);
    } finally {
      if (!signal.aborted) {
        reading.current = false;
        setReading(false);
      }
    }
  }, [api, selection, show]);

  const catchUp = useCallback(async () => {
    const { signal } = ending.current;
    const newest = current.current.records[0];
    if (newest === undefined) return readAgain();
    try {
      const later = await readLater(api, selection, newest.id, signal);
      if (signal.aborted) return;
      if (later === null) readAgain();
      else {
        show(withRecords(current.current, later));
        setError(null);
      }
    } catch (failure) {
      if (!signal.aborted) setError(failure);
    }
  }, [api, selection, show, readAgain]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt begins anew
  useEffect(() => {
    const own = new AbortController();
    ending.current = own;
    reading.current = false;
    show(emptyList);
    setPending(true);
    setError(null);
    void readMore();
    return () => own.abort();
  }, [readMore, show, attempt]);

  const handlers = useMemo(
    () => ({
      device: selection.device,
      onFrames: (frames: readonly Notification[]) => {
        const arrived = recordsIn(frames).filter((record) => selects(selection, record));
        show(withRecords(current.current, arrived));
      },
      onGap: () => void catchUp(),
      onState: (state: StreamState) => {
        setStream(state);
        // What was stored between reading and following, or while the stream was away or paused.
        if (state === "live") void catchUp();
      },
    }),
    [selection, show, catchUp],
  );
  useDataFrames(handlers, live);

  return { ...list, error, isPending, isReading, stream, readMore: () => void readMore(), readAgain };
}
