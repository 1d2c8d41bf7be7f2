/** A process that is up: what the supervision needs to know of it. */
export interface RunningProcess {
  readonly pid: number;
  /** Resolves when it has ended, with how, as the end of a sentence: "was killed (SIGKILL)". Never rejects. */
  readonly ended: Promise<string>;
  /** Asks it to end (SIGTERM) and kills it when it has not after `graceMs`. */
  end(graceMs: number): Promise<void>;
}

/** One sentence for the user that says why something of the mesh could not start. */
export class StartFailure extends Error {
  override readonly name = "StartFailure";
}
