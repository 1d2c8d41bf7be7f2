/** How long a server has to answer, in milliseconds. */
const answerMs = 3_000;

/** Whether the server of an origin answers at all, which needs no key and costs it next to nothing. */
export async function serverAnswers(origin: string, signal: AbortSignal): Promise<boolean> {
  return await fetch(`${origin}/icon.svg`, {
    method: "HEAD",
    cache: "no-store",
    // Another origin need not admit this page to answer it.
    mode: "no-cors",
    signal: AbortSignal.any([signal, AbortSignal.timeout(answerMs)]),
  }).then(
    ({ ok, type }) => ok || type === "opaque",
    () => false,
  );
}
