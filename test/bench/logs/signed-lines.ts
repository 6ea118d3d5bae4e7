// An exported chamber with real signatures, as input for the auditor, written once and kept between runs.
import { sign } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseSignature, signatureBase } from '../../../src/crypto/http-signature.ts';
import { type Chamber, stageChamberEvent } from '../../../src/forum/staging.ts';
import type { MoveFact } from '../../../src/vocabulary/events.ts';
import type { Millis } from '../../../src/vocabulary/values.ts';
import { BENCH_FOLDER } from '../folder.ts';
import { type Agent, makeAgent } from '../load/agents.ts';
import { type Author, creation, joining, move } from './past.ts';

const CHAMBER_ID = 1;
const MEMBERS = 3;
const START = Date.parse('2026-11-01T00:00:00Z');
/** A day holds 864,000 events, so that the auditor must remember all signatures. */
const EVERY_MILLIS = 100;

export function signedLines(events: number): string {
  const path = resolve(BENCH_FOLDER, `signed-${events}.ndjson`);
  if (existsSync(path)) return path;
  process.stderr.write(`  signing ${events} events\n`);
  mkdirSync(BENCH_FOLDER, { recursive: true });
  const file = openSync(`${path}.unfinished`, 'w');
  for (const line of lines(events)) writeSync(file, line);
  closeSync(file);
  renameSync(`${path}.unfinished`, path);
  return path;
}

function* lines(events: number): Generator<string> {
  const agents = Array.from({ length: MEMBERS }, makeAgent);
  let chamber: Chamber | undefined;
  for (let index = 0; index < events; index++) {
    const now = START + index * EVERY_MILLIS;
    const [fact, author] = factAt(index, agents);
    const signer = agents.find(({ did }) => did === author.did) as Agent;
    const staged = stageChamberEvent(chamber, CHAMBER_ID, fact, { author: signed(author, signer, now), at: now });
    chamber = staged.after;
    yield `${staged.entry.line}\n`;
  }
}

function factAt(index: number, agents: readonly Agent[]): [MoveFact, Author] {
  if (index === 0) return creation(agents[0] as Agent, START + (1 + MEMBERS) * EVERY_MILLIS);
  if (index <= MEMBERS) return joining(agents[index - 1] as Agent, CHAMBER_ID, index - 1);
  return move(agents, CHAMBER_ID, index - 1 - MEMBERS);
}

function signed(author: Author, { privateKey }: Agent, now: Millis): Author {
  const { request } = author;
  if (request === null) return author;
  const signatureInput = request.signatureInput.replace(/created=\d+/, `created=${Math.floor(now / 1000)}`);
  const base = signatureBase(parseSignature({ ...request, signatureInput }), request);
  const signature = `sig1=:${sign(null, Buffer.from(base), privateKey).toString('base64')}:`;
  return { ...author, request: { ...request, signatureInput, signature } };
}
