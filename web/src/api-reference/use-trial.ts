import { useCallback, useEffect, useRef, useState } from "react";
import { useApi } from "../api/api-context.tsx";
import { sendRequest, type TriedAnswer } from "./send-request.ts";
import type { TriedRequest } from "./tried-request.ts";

/** One request at a time, and what came of it. */
interface Trial {
  readonly running: boolean;
  /** What has come so far; null before the first answer begins. */
  readonly answer: TriedAnswer | null;
  /** Why no answer came, or not all of it; null otherwise. */
  readonly error: unknown;
  readonly send: (request: TriedRequest) => void;
  readonly stop: () => void;
}

/** Sends requests with the signed-in key; one that runs is stopped when the component goes. */
export function useTrial(): Trial {
  const api = useApi();
  const [running, setRunning] = useState(false);
  const [answer, setAnswer] = useState<TriedAnswer | null>(null);
  const [error, setError] = useState<unknown>(null);
  const ending = useRef<AbortController | null>(null);
  useEffect(() => () => ending.current?.abort(), []);

  const send = useCallback(
    (request: TriedRequest) => {
      const controller = new AbortController();
      ending.current?.abort();
      ending.current = controller;
      setRunning(true);
      setAnswer(null);
      setError(null);
      // What an earlier request still tells is no longer asked for.
      const ifCurrent = (act: () => void) => {
        if (ending.current === controller) act();
      };
      const onAnswer = (each: TriedAnswer) => ifCurrent(() => setAnswer(each));
      sendRequest(request, { api, onAnswer, signal: controller.signal })
        .catch((cause: unknown) => ifCurrent(() => setError(cause)))
        .finally(() => ifCurrent(() => setRunning(false)));
    },
    [api],
  );
  const stop = useCallback(() => ending.current?.abort(), []);
  return { running, answer, error, send, stop };
}
