// Signed load against a service that may die at any moment: every request is kept with what became of it.
import { DEADLINES } from '../../src/vocabulary/values.ts';
import type { Random } from '../kit/random.ts';
import { PUBLIC_URL } from '../kit/service-process.ts';
import { Signer } from '../kit/signer.ts';
import { prepare, registrationOf, send, type Wire } from '../kit/wire.ts';

export interface Attempt {
  readonly request: Wire;
  /** The body of the 200 that was received, if one was. */
  readonly answer: unknown;
}

/** An agent alone in a chamber in PROPOSAL and in one in DEBATE, so that every turn is its own. */
export interface Player {
  readonly signer: Signer;
  readonly proposing: number;
  readonly debating: number;
}

const DAY_MS = 86_400_000;

export async function seatPlayers(url: string, count: number, lobbyEndsAt: number): Promise<readonly Player[]> {
  return Promise.all(Array.from({ length: count }, () => seatPlayer(url, lobbyEndsAt)));
}

async function seatPlayer(url: string, lobbyEndsAt: number): Promise<Player> {
  const signer = new Signer();
  await must(url, prepare('POST', '/register', { body: registrationOf(signer), publicUrl: PUBLIC_URL }));
  const proposing = await seat(url, signer, [lobbyEndsAt, lobbyEndsAt + DAY_MS]);
  const debating = await seat(url, signer, [lobbyEndsAt, lobbyEndsAt, lobbyEndsAt + DAY_MS]);
  return { signer, proposing, debating };
}

async function seat(url: string, by: Signer, deadlines: readonly number[]): Promise<number> {
  const last = deadlines.at(-1) ?? 0;
  const entries = DEADLINES.map((name, index) => [name, new Date(deadlines[index] ?? last).toISOString()]);
  const body = { name: 'Seat', ...Object.fromEntries(entries) };
  const { chamberId } = await must(url, prepare('POST', '/chambers', { by, body, publicUrl: PUBLIC_URL }));
  await must(url, prepare('POST', `/chambers/${chamberId}/join`, { by, publicUrl: PUBLIC_URL }));
  return chamberId;
}

/** Plays until the service no longer answers; a refusal is a failure of the test. */
export async function play(url: string, player: Player, random: Random): Promise<readonly Attempt[]> {
  const attempts: Attempt[] = [];
  for (;;) {
    const request = nextMove(player, random, attempts.length);
    const answer = await attempt(url, request);
    attempts.push({ request, answer });
    if (answer === undefined) return attempts;
  }
}

/** The body of a 200, or undefined where none came. */
async function attempt(url: string, request: Wire): Promise<unknown> {
  try {
    return await must(url, request);
  } catch (error) {
    // fetch fails by TypeError when the connection does.
    if (error instanceof TypeError || error instanceof DOMException) return undefined;
    throw error;
  }
}

function nextMove({ signer, proposing, debating }: Player, random: Random, round: number): Wire {
  const unique = `${random.below(2 ** 31)}.${round}`;
  const signed = (method: string, path: string, body: unknown) =>
    prepare(method, path, { by: signer, body, publicUrl: PUBLIC_URL });
  return random.pick([
    () => signed('POST', `/chambers/${debating}/debate`, { comment: unique }),
    () => signed('POST', `/chambers/${debating}/pass`, undefined),
    () => signed('POST', `/chambers/${proposing}/propose`, { name: unique, ticker: unique }),
    () => signed('PUT', '/personality', { patch: { style: unique } }),
    () => prepare('POST', '/register', { body: registrationOf(new Signer()), publicUrl: PUBLIC_URL }),
  ])();
}

export async function must(url: string, request: Wire) {
  const { status, body } = await send(url, request);
  if (status !== 200) throw new Error(`${request.method} ${request.path}: ${status} ${JSON.stringify(body)}`);
  return body;
}
