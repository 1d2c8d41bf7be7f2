/** Browsers by the words in their user agent; others repeat those of the last ones. */
const browsers = [
  ["Edg", "Edge"],
  ["OPR", "Opera"],
  ["Firefox", "Firefox"],
  ["Chrome", "Chrome"],
  ["Safari", "Safari"],
] as const;
const systems = ["Windows", "Android", "iPhone", "iPad", "Mac OS", "Linux"] as const;

/** The browser of a user agent in words, such as "Firefox on Linux"; for the list of sessions. */
export function browserName(userAgent: string): string {
  const browser = browsers.find(([word]) => userAgent.includes(word))?.[1] ?? "Browser";
  const system = systems.find((word) => userAgent.includes(word));
  return system === undefined ? browser : `${browser} on ${system}`;
}
