/** How a simulated device takes new firmware; by default well, within some seconds. */
export interface UpdateBehaviour {
  /** Pause after each of some 20 pieces of a download, in milliseconds. */
  readonly pieceMs?: number;
  /** Time in which it writes a piece that it is sent, in milliseconds. */
  readonly writeMs?: number;
  /** How long it is away when it boots, in milliseconds. */
  readonly bootMs?: number;
  /** Takes `offset` in `OTA.Write`, and goes on there after a lost connection. */
  readonly takesOffset?: boolean;
  /** Loses its connections once, half-way through each update. */
  readonly drops?: boolean;
  /** Boots the old version: its boot loader finds a fault in the new one. */
  readonly rollsBack?: boolean;
  /** Reports another version than that of its image. */
  readonly reportsOther?: boolean;
}

const well: UpdateBehaviour = {};
const slow: UpdateBehaviour = { pieceMs: 1_500, writeMs: 100 };

/** Of ten devices of a fleet with `--firmware`. */
const mix: readonly UpdateBehaviour[] = [
  well,
  slow,
  well,
  { drops: true },
  well,
  { rollsBack: true },
  well,
  { drops: true },
  well,
  { reportsOther: true },
];

/** The behaviour of the device of an index, counted from 1; every other ten take offsets. */
export function behaviourInMix(index: number): UpdateBehaviour {
  const tens = Math.floor((index - 1) / mix.length);
  return { ...mix[(index - 1) % mix.length], takesOffset: (index + tens) % 2 === 0 };
}
