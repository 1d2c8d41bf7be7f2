/** Random numbers that are the same for the same seed. */
export interface SeededRandom {
  /** Uniform in `[from, to)`. */
  between(from: number, to: number): number;
  /** True with a probability of `1 / draws`. */
  oneIn(draws: number): boolean;
  pick<T>(choices: readonly [T, ...T[]]): T;
  bytes(length: number): Buffer;
}

/** mulberry32; each `stream` of a seed, such as a device, has numbers of its own. */
export function seededRandom(seed: number, stream: number): SeededRandom {
  let state = (seed ^ Math.imul(stream + 1, 0x9e3779b1)) >>> 0;
  const draw = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    between: (from, to) => from + draw() * (to - from),
    oneIn: (draws) => draw() * draws < 1,
    pick: (choices) => choices[Math.floor(draw() * choices.length)] ?? choices[0],
    bytes: (length) => Buffer.from(Array.from({ length }, () => Math.floor(draw() * 256))),
  };
}
