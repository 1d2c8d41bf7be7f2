import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "@devmesh/testkit/eventually";

const run = promisify(execFile);

/** Whether this process can make and mount disks: root on Linux with loop devices. */
export function canCutPower(): boolean {
  if (process.getuid?.() !== 0) return false;
  try {
    execFileSync("losetup", ["--find"], { stdio: "ignore" });
    execFileSync("mkfs.ext4", ["-V"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** An ext4 disk in a file. Unsynced writes are in the memory of its file system and not in the file. */
export interface PowerCutDisk extends AsyncDisposable {
  /** Where it is mounted. */
  readonly path: string;
  /**
   * Stops the processes, keeps the disk without what is in memory, calls `end`, which ends the processes, and mounts
   * what was kept at the same path.
   */
  cutPower(processes: readonly number[], end: () => Promise<void>): Promise<void>;
}

/** Makes and mounts an empty disk. */
export async function makeDisk(): Promise<PowerCutDisk> {
  const folder = await mkdtemp(join(tmpdir(), "devmesh-disk-"));
  const image = join(folder, "image");
  const path = join(folder, "mounted");
  let device = "";

  async function mount(): Promise<void> {
    const { stdout } = await run("losetup", ["--find", "--show", image]);
    device = stdout.trim();
    // Otherwise the file system would commit its journal after five seconds.
    await run("mount", ["-t", "ext4", "-o", "commit=600", device, path]);
  }

  async function unmount(): Promise<void> {
    if (device === "") return;
    // A killed process may take a moment to close its files.
    await eventually(() => run("umount", [path]));
    await run("losetup", ["--detach", device]);
    device = "";
  }

  /** The writes so far; null while one is in flight. */
  async function writesDone(): Promise<string | null> {
    const fields = (await readFile(`/sys/block/${basename(device)}/stat`, "utf8")).trim().split(/\s+/);
    const [writes, inFlight, discards, flushes] = [fields[4], fields[8], fields[11], fields[15]];
    return inFlight === "0" ? [writes, discards, flushes].join() : null;
  }

  await writeFile(image, "");
  await truncate(image, 2 * 1024 ** 3);
  await run("mkfs.ext4", ["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image]);
  await run("mkdir", [path]);
  await mount();
  return {
    path,
    async cutPower(processes, end) {
      for (const pid of processes) process.kill(pid, "SIGSTOP");
      const kept = `${image}.kept`;
      // A copy is of one moment only if nothing was written meanwhile.
      await eventually(async () => {
        const before = await writesDone();
        if (before === null) return false;
        await run("cp", ["--sparse=always", image, kept]);
        return (await writesDone()) === before;
      });
      await end();
      await unmount();
      await rename(kept, image);
      await mount();
    },
    async [Symbol.asyncDispose]() {
      await unmount();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
