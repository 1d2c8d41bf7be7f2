import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The files that name the release, and what is a version in them. */
const places = [
  {
    files: [
      "package.json",
      "package-lock.json",
      "{bench,e2e,k8s,supervisor,web}/package.json",
      "{clients,libs,services,tools}/*/package.json",
    ],
    version: /(?<="name": "(?:@devmesh\/[\w-]+|devmesh)",\n +"version": ")[^"]+/g,
  },
  { files: ["libs/contracts/src/release.ts"], version: /(?<=release = ")[^"]+/g },
  { files: ["clients/python/pyproject.toml"], version: /(?<=^version = ")[^"]+/gm },
  { files: ["k8s/overlays/*/kustomization.yaml"], version: /(?<=\/devmesh-[\w-]+\n +newTag: )\S+/g },
  { files: ["docs/operations/install.md"], version: /(?<=\bVERSION=)\S+/g },
  { files: ["README.md"], version: /(?<=^Version )\d+\.\d+\.\d+/gm },
];

/** Each mention of the release in the files of a repository that are written by hand. */
export function mentionsOfRelease(root: string): { readonly path: string; readonly version: string }[] {
  return places.flatMap(({ files, version }) =>
    globSync(files, { cwd: root }).flatMap((path) =>
      [...readFileSync(join(root, path), "utf8").matchAll(version)].map(([found]) => ({
        path,
        version: found,
      })),
    ),
  );
}

/** Writes a release into each of these places. */
export function setRelease(root: string, release: string): void {
  for (const { files, version } of places) {
    for (const path of globSync(files, { cwd: root })) {
      const file = join(root, path);
      writeFileSync(file, readFileSync(file, "utf8").replaceAll(version, release));
    }
  }
}

/** The changelog with the date of a release in its heading; null without a heading of that release. */
export function datedChangelog(changelog: string, release: string, date: string): string | null {
  const heading = `\n## ${release}, unreleased\n`;
  return changelog.includes(heading) ? changelog.replace(heading, `\n## ${release}, ${date}\n`) : null;
}
