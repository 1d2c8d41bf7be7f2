/** Milliseconds since the last call, 0 at the first. */
export function stopwatch(): () => number {
  let last = performance.now();
  return () => {
    const now = performance.now();
    const elapsed = now - last;
    last = now;
    return elapsed;
  };
}

/** `value` on its way to `target`: 63 % of it after `timeMs`, as what warms up or fills does. */
export function approach(value: number, target: number, elapsedMs: number, timeMs: number): number {
  return target + (value - target) * Math.exp(-elapsedMs / timeMs);
}

/** A number within `spread` of `value`, as a sensor measures it. */
export function measured(value: number, spread: number): number {
  return value + (2 * Math.random() - 1) * spread;
}

/** A random number between both. */
export function between(from: number, to: number): number {
  return from + Math.random() * (to - from);
}

/** Rounded to `digits` after the point. */
export function rounded(value: number, digits = 1): number {
  return Number(value.toFixed(digits));
}
