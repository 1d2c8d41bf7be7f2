/** mulberry32: the same numbers for the same seed; each `stream` of a seed, such as a device, has its own. */
export function seededRandom(seed: number, stream: number) {
  let state = (seed ^ Math.imul(stream + 1, 0x9e3779b1)) >>> 0;
  const draw = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    /** Uniform in `[from, to)`. */
    between: (from: number, to: number) => from + draw() * (to - from),
    /** True with a probability of `1 / draws`. */
    oneIn: (draws: number) => draw() * draws < 1,
    pick: <T>(choices: readonly [T, ...T[]]): T => choices[Math.floor(draw() * choices.length)] ?? choices[0],
    bytes: (length: number) => Buffer.from(Array.from({ length }, () => Math.floor(draw() * 256))),
  };
}

/** Random numbers that a run can repeat. */
export type SeededRandom = ReturnType<typeof seededRandom>;
