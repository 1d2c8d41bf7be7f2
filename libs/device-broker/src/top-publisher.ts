import type { JetStreamManager, StoredMsg } from "@nats-io/jetstream";

/** Where to look. */
export interface TopPublisherOptions {
  readonly stream: string;
  readonly prefix: string;
  /** First and last sequence that count. */
  readonly between: readonly [first: number, last: number];
  /** The device that a subject without the prefix is charged to; null for none. */
  readonly deviceOf: (subject: string) => string | null;
  readonly weightOf?: (message: StoredMsg) => number;
  /** What the heaviest device must have of all; default: the most of all devices, however little. */
  readonly leastShareOfOne?: number;
}

const sampleSize = 32;

/** Where less of the weight than this is to be laid to devices, theirs is not what takes the room. */
const leastShare = 0.25;

/** The device whose messages weigh most, by a sample; null when devices are not what takes the room. */
export async function findTopPublisher(
  manager: JetStreamManager,
  {
    stream,
    prefix,
    between: [first, last],
    deviceOf,
    weightOf = ({ data, subject }) => data.length + subject.length,
    leastShareOfOne = 0,
  }: TopPublisherOptions,
): Promise<string | null> {
  const weights = new Map<string, number>();
  let total = 0;
  let ofDevices = 0;
  const width = last - first + 1;
  for (let taken = 0; taken < sampleSize && width > 0; taken++) {
    const seq = first + Math.floor((width * taken) / sampleSize);
    // The next one that is still there.
    const query = { seq, next_by_subj: `${prefix}>` };
    const message = await manager.streams.getMessage(stream, query);
    if (message === null || message.seq > last) break;
    const deviceId = deviceOf(message.subject.slice(prefix.length));
    const weight = weightOf(message);
    total += weight;
    if (deviceId === null) continue;
    ofDevices += weight;
    weights.set(deviceId, (weights.get(deviceId) ?? 0) + weight);
  }
  if (ofDevices < total * leastShare) return null;
  const [heaviest] = [...weights].sort(([, one], [, other]) => other - one);
  return heaviest !== undefined && heaviest[1] >= total * leastShareOfOne ? heaviest[0] : null;
}
