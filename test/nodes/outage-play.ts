// Agents in test:outage: each plays one chamber after another at its node, and repeats each request, byte for byte, until the
// response is not a 503.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Signer } from '../kit/signer.ts';
import { prepare, registrationOf, send, type Wire, type WireAnswer } from '../kit/wire.ts';
import { PUBLIC_URL } from './cluster.ts';

/** The length of a phase of weight 1. */
export const PHASE_MS = 1_500;
/** Deadlines in phases since the creation; the debate is the longest phase. */
const PHASES = { lobby: 2, proposal: 2, debate: 5, allocateCommit: 6, allocateReveal: 7 };
const SLOW_MS = 4_000;
const PATIENCE_MS = 60_000;
const PAUSE_MS = 50;
/** Comments are random text, so that each move needs room on the disk. */
const COMMENT_BYTES = 1_500;

export class Play {
  readonly problems: string[] = [];
  /** The ids of the answered events, by chamber. */
  readonly answered = new Map<number, Set<number>>();
  readonly #onChamber: (chamberId: number) => void;
  isOver = false;

  constructor(onChamber: (chamberId: number) => void) {
    this.#onChamber = onChamber;
  }

  async register(url: string): Promise<Signer> {
    const by = new Signer();
    await this.#persist(url, prepare('POST', '/register', { body: registrationOf(by), publicUrl: PUBLIC_URL }));
    return by;
  }

  /** Plays chambers one after another: creates, joins and debates while their phases pass. */
  async play(url: string, by: Signer): Promise<void> {
    const post = (path: string, body: object) =>
      this.#persist(url, prepare('POST', path, { by, body, publicUrl: PUBLIC_URL }));
    while (!this.isOver) {
      const created = await post('/chambers', { name: 'Outage', ...deadlines(), minBackersForGraduation: 1 });
      // An outage has outlasted the chamber's lobby.
      if (created.status !== 200) continue;
      const { chamberId } = created.body;
      const ids = new Set<number>();
      this.answered.set(chamberId, ids);
      this.#onChamber(chamberId);
      const path = `/chambers/${chamberId}`;
      const joined = await post(`${path}/join`, {});
      for (; joined.status === 200 && !this.isOver; await sleep(PAUSE_MS)) {
        const comment = randomBytes(COMMENT_BYTES).toString('base64');
        const { status, body } = await post(`${path}/debate`, { comment });
        if (status === 200) ids.add(body.eventId);
        else if (/ALLOCATE|COMMITTED/.test(body.detail)) break;
      }
    }
  }

  async #persist(url: string, wire: Wire): Promise<WireAnswer> {
    for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await sleep(2 * PAUSE_MS)) {
      const answer = await send(url, wire, AbortSignal.timeout(SLOW_MS)).catch(() => undefined);
      if (answer === undefined || answer.status === 503) continue;
      if (!EXPECTED.includes(answer.status)) {
        this.problems.push(`${wire.path} returned ${answer.status} ${JSON.stringify(answer.body)}`);
        if (answer.status >= 500) continue;
      }
      return answer;
    }
    this.problems.push(`${wire.path} had no response for a minute`);
    this.isOver = true;
    return { status: 0, body: { detail: '' }, headers: new Headers() };
  }
}

/** Statuses that are allowed because a deadline or a phase may have passed in the meantime. */
const EXPECTED = [200, 400, 403];

function deadlines() {
  const at = (phases: number) => new Date(Date.now() + phases * PHASE_MS).toISOString();
  return Object.fromEntries(Object.entries(PHASES).map(([name, phases]) => [`${name}Deadline`, at(phases)]));
}
