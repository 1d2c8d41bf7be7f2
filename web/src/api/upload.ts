import { Firmware } from "@devmesh/contracts/model/firmware";
import { ApiProblem, UnexpectedAnswer, Unreachable } from "./api-problem.ts";

/** The content of firmware to be sent. */
export interface ContentUpload {
  /** Id of the firmware. */
  readonly id: string;
  readonly content: Blob;
  readonly signal: AbortSignal;
  /** Called with the number of bytes that have left. */
  readonly onSent: (bytes: number) => void;
}

/**
 * Sends the content of firmware; the browser reads it from the disk as it goes. `fetch` does not report how much of a
 * body has left, so this is an XMLHttpRequest. Rejects as `ApiClient.call` does.
 */
export function upload(
  url: string,
  key: string,
  { content, signal, onSent }: ContentUpload,
): Promise<Firmware> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open("POST", url);
    request.setRequestHeader("Authorization", `Bearer ${key}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = ({ loaded }) => onSent(loaded);
    request.onload = () => void answerOf(request).then(resolve, reject);
    request.onerror = () => reject(new Unreachable(new Error("the connection was lost during the upload")));
    request.onabort = () => reject(signal.reason);
    request.onloadend = () => signal.removeEventListener("abort", abort);
    signal.addEventListener("abort", abort);
    request.send(content);
  });
}

async function answerOf({ status, responseText }: XMLHttpRequest): Promise<Firmware> {
  if (status !== 200) throw await ApiProblem.from(new Response(responseText, { status }));
  try {
    return Firmware.parse(JSON.parse(responseText));
  } catch (cause) {
    throw new UnexpectedAnswer("uploadFirmware", cause);
  }
}
