// Signed load against a service that may die at any moment. Every request is recorded with its result.
import type { Receipt } from '../../src/crypto/receipt.ts';
import type { ForumEvent } from '../../src/vocabulary/events.ts';
import { DEADLINES } from '../../src/vocabulary/values.ts';
import type { HistoryRequest } from '../forum/simulation/history.ts';
import { askedBy } from '../forum/simulation/wire-history.ts';
import { TestClock } from '../kit/clock.ts';
import type { Random } from '../kit/random.ts';
import { askingForReceipt, receiptOf } from '../kit/receipts.ts';
import { PUBLIC_URL } from '../kit/service-process.ts';
import { Signer } from '../kit/signer.ts';
import { registrationOf, TestService } from '../kit/test-service.ts';
import { prepare, send, type Wire, type WireAnswer } from '../kit/wire.ts';

export interface Attempt {
  readonly request: Wire;
  /** The body of a 200 response, if there was one: an event, an idea or an account. */
  readonly answer: Partial<Pick<ForumEvent, 'did' | 'eventId' | 'chamberId'>> | undefined;
  /** The receipt, which signed requests ask for. */
  readonly receipt: Receipt | undefined;
  /** Milliseconds from performance.now(). */
  readonly sentAt: number;
  readonly endedAt: number;
}

/** The only member of a chamber in PROPOSAL and of one in DEBATE, who therefore always has the turn. */
export interface Player {
  readonly signer: Signer;
  readonly proposing: number;
  readonly debating: number;
}

const HOUR_MS = 3_600_000;

/** Writes the players and their chambers into a new database, dated an hour ago, so that no phase begins or ends during a test. */
export async function seatPlayers(databasePath: string, count: number): Promise<readonly Player[]> {
  const clock = new TestClock();
  clock.set(Date.now() - HOUR_MS);
  const service = new TestService({ path: databasePath, clock, settings: { PUBLIC_URL } });
  const players = await Promise.all(Array.from({ length: count }, () => seatPlayer(service)));
  await service.close();
  return players;
}

async function seatPlayer(service: TestService): Promise<Player> {
  const signer = await service.agent();
  const [begun, far] = [service.clock.read() + HOUR_MS / 2, service.clock.read() + 24 * HOUR_MS];
  const proposing = await seat(service, signer, [begun, far]);
  const debating = await seat(service, signer, [begun, begun, far]);
  return { signer, proposing, debating };
}

async function seat(service: TestService, by: Signer, deadlines: readonly number[]): Promise<number> {
  const last = deadlines.at(-1) ?? 0;
  const entries = DEADLINES.map((name, index) => [name, new Date(deadlines[index] ?? last).toISOString()]);
  const { chamberId } = await service.must('POST', '/chambers', {
    by,
    body: { name: 'Seat', ...Object.fromEntries(entries) },
  });
  await service.must('POST', `/chambers/${chamberId}/join`, { by });
  return chamberId;
}

/** Returns a move of the player in the chamber in DEBATE. */
export function debateOf({ signer, debating }: Player, body: Readonly<Record<string, unknown>>): Wire {
  return prepare('POST', `/chambers/${debating}/debate`, { by: signer, body, publicUrl: PUBLIC_URL });
}

/** Runs the players, each with one request at a time, until the service stops responding. */
export class Load {
  /** Every request that has a response or will get none. */
  readonly attempts: Attempt[] = [];
  /** Makes the moves of each player; rejects if the service returns an error. */
  readonly playing: readonly Promise<void>[];
  readonly #url: string;
  readonly #random: Random;
  #wake: () => void = () => {};

  constructor(url: string, players: readonly Player[], random: Random) {
    this.#url = url;
    this.#random = random;
    this.playing = players.map((player) => this.#play(player));
  }

  /** Waits for this number of responses; rejects if the players stop first. */
  async answered(count: number): Promise<void> {
    const early = Promise.all(this.playing).then(() => Promise.reject(new Error('the players stopped early')));
    early.catch(() => {});
    while (this.attempts.length < count) {
      const next = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await Promise.race([early, next]);
    }
  }

  async #play(player: Player): Promise<void> {
    for (let round = 0; ; round++) {
      const request = nextMove(player, this.#random, round);
      const made = await attempt(this.#url, request);
      this.attempts.push(made);
      this.#wake();
      if (made.answer === undefined) return;
    }
  }
}

/** Sends the request once; rejects if the service returns an error. */
export async function attempt(url: string, request: Wire): Promise<Attempt> {
  const sentAt = performance.now();
  const isSigned = request.headers['signature'] !== undefined;
  const answer = await mustAnswer(url, isSigned ? askingForReceipt(request) : request).catch((error) => {
    // fetch reports a failed connection as a TypeError.
    if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
  });
  const receipt = answer && isSigned ? receiptOf(request, answer, PUBLIC_URL) : undefined;
  return { request, answer: answer?.body, receipt, sentAt, endedAt: performance.now() };
}

function nextMove(player: Player, random: Random, round: number): Wire {
  const { signer, proposing, debating } = player;
  const unique = `${random.below(2 ** 31)}.${round}`;
  const signed = (method: string, path: string, body: unknown) =>
    prepare(method, path, { by: signer, body, publicUrl: PUBLIC_URL });
  return random.pick([
    () => debateOf(player, { comment: unique }),
    () => signed('POST', `/chambers/${debating}/pass`, undefined),
    () => signed('POST', `/chambers/${proposing}/propose`, { name: unique, ticker: unique }),
    () => signed('PUT', '/personality', { patch: { style: unique } }),
    () => prepare('POST', '/register', { body: registrationOf(new Signer()), publicUrl: PUBLIC_URL }),
  ])();
}

export async function must(url: string, request: Wire) {
  return (await mustAnswer(url, request)).body;
}

async function mustAnswer(url: string, request: Wire): Promise<WireAnswer> {
  const answer = await send(url, request);
  if (answer.status === 200) return answer;
  throw new Error(`${request.method} ${request.path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** Converts the attempts to the input of the checker. */
export function historyOf(attempts: readonly Attempt[]): readonly HistoryRequest[] {
  return attempts.map(({ request, answer, sentAt, endedAt }) => {
    const asked = askedBy(request);
    const id = `${request.path} ${asked.signature}`;
    if (answer === undefined) return { id, asked, invokedAt: sentAt };
    // The response to a registration has no eventId, but each registration is the first event of a new key. The response to a
    // proposal has none either.
    const { eventId = asked.operation === 'register' ? 1 : undefined, chamberId, did = null } = answer;
    const outcome = { is: 'accepted', event: { eventId, chamberId } } as const;
    return { id, asked: { ...asked, did: asked.did ?? did }, invokedAt: sentAt, respondedAt: endedAt, outcome };
  });
}
