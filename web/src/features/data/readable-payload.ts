/** A payload for display: JSON objects and arrays indented, other text unchanged. */
export function readablePayload(message: string): string {
  if (!/^\s*[[{]/.test(message)) return message;
  try {
    // Numbers that the page could not hold exactly are not to be changed by being shown.
    const lines = JSON.stringify(JSON.parse(message), null, 2);
    return lines.replace(/\s/g, "") === message.replace(/\s/g, "") ? lines : message;
  } catch {
    return message;
  }
}
