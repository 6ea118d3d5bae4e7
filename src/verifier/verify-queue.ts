// A fair queue of signatures: callers take turns, so no caller waits for the whole backlog of another.
import type { VerifyCaller } from '../crypto/verify.ts';

export interface VerifyJob {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly message: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
  readonly resolve: (isValid: boolean) => void;
  readonly reject: (error: Error) => void;
}

export interface QueueLimits {
  /** The maximum number of waiting jobs for one key from one network. */
  readonly perKeyMax: number;
  readonly perNetworkMax: number;
}

const REGISTERED: QueueLimits = { perKeyMax: 1_024, perNetworkMax: 8_192 };
const UNREGISTERED: QueueLimits = { perKeyMax: 64, perNetworkMax: 64 };
/** While both kinds are waiting, one in this many jobs has an unregistered key. */
const UNREGISTERED_EVERY_JOBS = 8;

export class VerifyQueue {
  readonly #registered: FairQueue;
  readonly #unregistered = new FairQueue(UNREGISTERED);
  #turns = 0;
  size = 0;

  constructor(limits: Partial<QueueLimits> = {}) {
    this.#registered = new FairQueue({ ...REGISTERED, ...limits });
  }

  /** Returns false if too many of the caller's jobs are waiting. */
  push(job: VerifyJob, caller: VerifyCaller): boolean {
    const isTaken = (caller.did === undefined ? this.#unregistered : this.#registered).push(job, caller);
    if (isTaken) this.size++;
    return isTaken;
  }

  take(): VerifyJob | undefined {
    this.#turns++;
    const isUnregisteredTurn = this.#turns % UNREGISTERED_EVERY_JOBS === 0;
    const [first, second] = isUnregisteredTurn
      ? [this.#unregistered, this.#registered]
      : [this.#registered, this.#unregistered];
    const job = first.take() ?? second.take();
    if (job !== undefined) this.size--;
    return job;
  }
}

interface Network {
  readonly keys: Map<string, VerifyJob[]>;
  waiting: number;
}

/** Serves networks in turn, and the keys of each network in turn: the first map entry is served next and then moves to the end. */
class FairQueue {
  readonly #limits: QueueLimits;
  readonly #networks = new Map<string, Network>();

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  push(job: VerifyJob, { network: name, did = '' }: VerifyCaller): boolean {
    const network = this.#networks.get(name) ?? { keys: new Map<string, VerifyJob[]>(), waiting: 0 };
    const jobs = network.keys.get(did) ?? [];
    if (jobs.length >= this.#limits.perKeyMax || network.waiting >= this.#limits.perNetworkMax) return false;
    jobs.push(job);
    network.waiting++;
    network.keys.set(did, jobs);
    this.#networks.set(name, network);
    return true;
  }

  take(): VerifyJob | undefined {
    const [name, network] = this.#networks.entries().next().value ?? [];
    const [did, jobs] = network?.keys.entries().next().value ?? [];
    if (name === undefined || network === undefined || did === undefined || jobs === undefined) return undefined;
    this.#networks.delete(name);
    network.keys.delete(did);
    const job = jobs.shift();
    network.waiting--;
    if (jobs.length > 0) network.keys.set(did, jobs);
    if (network.waiting > 0) this.#networks.set(name, network);
    return job;
  }
}
