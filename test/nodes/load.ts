// Clients without affinity. Each sends a signed move to random nodes, with the same bytes, until one responds, and then reads at
// a random node, which must show all moves answered before. Each move asks for a receipt. Several clients share a chamber and its
// only agent, so that the nodes compete for streams.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Receipt } from '../../src/crypto/receipt.ts';
import type { HistoryRequest } from '../forum/simulation/history.ts';
import { askedBy } from '../forum/simulation/wire-history.ts';
import { deadlinesFrom } from '../kit/chambers.ts';
import { Random } from '../kit/random.ts';
import { askingForReceipt, receiptOf } from '../kit/receipts.ts';
import { Signer } from '../kit/signer.ts';
import { get, prepare, registrationOf, send, type Wire, type WireAnswer } from '../kit/wire.ts';
import { PUBLIC_URL } from './cluster.ts';

const CLIENTS_PER_CHAMBER = 4;
/** Time to create and join chambers on a busy machine. */
const LOBBY_MS = 6_000;
/** The time after which a client asks another node. */
const ANSWER_MS_MAX = 3_000;
const PAUSE_MS = 50;
/** The time without a response after which a move counts as failed. */
const PATIENCE_MS = 45_000;

export interface Seen {
  /** Every attempt, including reads. */
  readonly requests: HistoryRequest[];
  readonly millis: number[];
  readonly receipts: Receipt[];
  reads: number;
  /** Responses of 503, and connections that broke or fell silent. */
  unavailable: number;
  broken: number;
  /** The longest time without an answered move. */
  longestGapMillis: number;
  /** The lines of all chambers, as one consumer received them. */
  readonly lines: string[];
  readonly problems: string[];
}

export interface Load {
  readonly stop: () => Promise<Seen>;
}

interface Place {
  readonly chamberId: number;
  readonly by: Signer;
}

export interface LoadOptions {
  readonly urls: readonly string[];
  readonly clients: number;
  readonly seed: number;
}

/** Resolves when the chambers are in DEBATE and the clients have started. */
export async function startLoad({ urls, clients, seed }: LoadOptions): Promise<Load> {
  const seen: Seen = {
    ...{ requests: [], millis: [], receipts: [], lines: [], problems: [] },
    ...{ reads: 0, unavailable: 0, broken: 0, longestGapMillis: 0 },
  };
  const chambers = Math.ceil(clients / CLIENTS_PER_CHAMBER);
  const url = (index: number) => urls[index % urls.length] as string;
  const agents = await Promise.all(Array.from({ length: chambers }, (_, index) => registered(url(index))));
  const debateFrom = Date.now() + LOBBY_MS;
  const places = await Promise.all(agents.map((by, index) => openPlace(url(index), by, debateFrom)));
  await sleep(Math.max(0, debateFrom - Date.now()) + PAUSE_MS);
  let isOver = false;
  let isAllAnswered = false;
  let lastAnswerAt = performance.now();
  const playing = Array.from({ length: clients }, (_, index) => play(places[index % chambers] as Place, index));
  const following = follow();
  return {
    stop: async () => {
      isOver = true;
      await Promise.all(playing);
      isAllAnswered = true;
      await following;
      return seen;
    },
  };

  async function play(place: Place, index: number): Promise<void> {
    const random = new Random(seed * 1_000 + index);
    for (let step = 0; !isOver; step++) {
      const wire = randomMove(random, place, `${index}.${step}`);
      const answer = await persist(random, wire);
      if (answer === undefined) return;
      noteProgress();
      if (random.chance(0.05)) {
        const again = await persist(random, wire);
        const [one, other] = [answer, again].map((each) => JSON.stringify(each?.body));
        if (one !== other) seen.problems.push(`a retry returned ${other}, but the first request returned ${one}`);
      }
      await read(random, place);
    }
  }

  /** Returns the 200 response of any node. */
  async function persist(random: Random, wire: Wire): Promise<WireAnswer | undefined> {
    const startedAt = performance.now();
    while (performance.now() - startedAt < PATIENCE_MS) {
      const asked = askedBy(wire);
      const request = { id: `${wire.path} ${asked.signature}`, asked, invokedAt: performance.now() };
      const place = seen.requests.push(request) - 1;
      try {
        const answer = await send(random.pick(urls), askingForReceipt(wire), AbortSignal.timeout(ANSWER_MS_MAX));
        if (answer.status === 200) {
          const { eventId, chamberId } = answer.body;
          const outcome = { is: 'accepted', event: { eventId, chamberId } } as const;
          seen.requests[place] = { ...request, respondedAt: performance.now(), outcome };
          seen.millis.push(performance.now() - startedAt);
          seen.receipts.push(receiptOf(wire, answer, PUBLIC_URL));
          return answer;
        }
        if (answer.status !== 503) {
          seen.problems.push(`${wire.path} returned ${answer.status} ${JSON.stringify(answer.body)}`);
          return undefined;
        }
        seen.unavailable++;
      } catch {
        seen.broken++;
      }
      await sleep(PAUSE_MS);
    }
    seen.problems.push(`${wire.path} had no response for ${PATIENCE_MS} ms`);
    return undefined;
  }

  function noteProgress(): void {
    const now = performance.now();
    seen.longestGapMillis = Math.max(seen.longestGapMillis, now - lastAnswerAt);
    lastAnswerAt = now;
  }

  async function read(random: Random, { chamberId }: Place): Promise<void> {
    const path = `/chambers/${chamberId}/merkle-preview`;
    const request = { id: `${path} ${seen.reads}`, asked: { stream: chamberId }, invokedAt: performance.now() };
    const answer = await attempt(random.pick(urls), path);
    if (answer === undefined) return;
    seen.reads++;
    // Every event of these chambers is a move.
    const outcome = { is: 'read', lastEventId: answer.body.eventCount } as const;
    seen.requests.push({ ...request, respondedAt: performance.now(), outcome });
  }

  /** Returns undefined if the node cannot respond now. */
  async function attempt(url: string, path: string): Promise<WireAnswer | undefined> {
    try {
      const answer = await get(url, path, AbortSignal.timeout(ANSWER_MS_MAX));
      if (answer.status === 200) return answer;
      if (answer.status === 503) seen.unavailable++;
      else seen.problems.push(`${path} returned ${answer.status} ${JSON.stringify(answer.body)}`);
    } catch {
      seen.broken++;
    }
    await sleep(PAUSE_MS);
    return undefined;
  }

  /** Runs one consumer of all chambers, which resumes at another node each time, up to the end of the log. */
  async function follow(): Promise<void> {
    const random = new Random(seed);
    let cursor = '0';
    for (;;) {
      const mayEnd = isAllAnswered;
      const count = seen.lines.length;
      try {
        const url = `${random.pick(urls)}/events?after=${cursor}`;
        const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
        const lines = (await response.text()).split('\n').slice(0, -1);
        if (response.status === 200) seen.lines.push(...lines);
        else if (response.status !== 503) seen.problems.push(`${url} returned ${response.status} ${lines}`);
        const last = response.status === 200 && lines.length > 0 ? JSON.parse(lines.at(-1) as string) : undefined;
        if (last !== undefined) cursor = `${last.chamberId}:${last.eventId}`;
        if (mayEnd && response.status === 200 && seen.lines.length === count) return;
      } catch {
        seen.broken++;
      }
      if (seen.lines.length - count < 1_000) await sleep(PAUSE_MS * 4);
    }
  }
}

async function registered(url: string): Promise<Signer> {
  const by = new Signer();
  const { operatorEmail, ...registration } = registrationOf(by);
  await post(url, { path: '/register', body: { ...registration, operatorEmail } });
  await post(url, { path: '/register', body: registration, by });
  return by;
}

async function openPlace(url: string, by: Signer, debateFrom: number): Promise<Place> {
  const { chamberId } = await post(url, { path: '/chambers', body: { name: by.did, ...debate(debateFrom) }, by });
  await post(url, { path: `/chambers/${chamberId}/join`, body: {}, by });
  return { chamberId, by };
}

async function post(url: string, { path, body, by }: { path: string; body: unknown; by?: Signer }) {
  const answer = await send(url, prepare('POST', path, { body, publicUrl: PUBLIC_URL, ...(by && { by }) }));
  if (answer.status !== 200) throw new Error(`${path} returned ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Returns deadlines; DEBATE begins when LOBBY ends. */
function debate(from: number) {
  return { ...deadlinesFrom(from, [0, 0, 1, 2, 3]), minBackersForGraduation: 1 };
}

function randomMove(random: Random, { chamberId, by }: Place, text: string): Wire {
  const sign = (method: string, path: string, body: unknown) =>
    prepare(method, path, { by, body, publicUrl: PUBLIC_URL });
  const chance = random.next();
  if (chance < 0.02) return sign('POST', '/chambers', { name: text, ...debate(Date.now() + 60_000) });
  if (chance < 0.07) return sign('PUT', '/personality', { patch: { style: text } });
  if (chance < 0.17) return sign('POST', `/chambers/${chamberId}/pass`, {});
  return sign('POST', `/chambers/${chamberId}/debate`, { comment: text });
}
