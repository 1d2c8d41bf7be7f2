/** Work on devices: in order for one device, side by side for different ones. */
export interface DeviceLanes {
  /** Runs `task` when all that was given before for this device has ended, however it ended. */
  run<T>(deviceId: string, task: () => Promise<T>): Promise<T>;
  /** Devices with work that has not ended. */
  readonly busy: number;
}

/** Lanes without work. What waits in them is not bounded here: who feeds them holds back. */
export function createDeviceLanes(): DeviceLanes {
  const tails = new Map<string, Promise<unknown>>();
  return {
    run(deviceId, task) {
      const before = tails.get(deviceId) ?? Promise.resolve();
      const work = before.then(task);
      const tail = work.then(ignore, ignore).then(() => {
        if (tails.get(deviceId) === tail) tails.delete(deviceId);
      });
      tails.set(deviceId, tail);
      return work;
    },
    get busy() {
      return tails.size;
    },
  };
}

const ignore = () => undefined;
