// `chambers chamber tail`: a follower whose file is its cursor, so that being killed costs and repeats nothing.
import { type FileHandle, open } from 'node:fs/promises';
import { type ChamberState, evolveChamber } from '../../projections/chamber.ts';
import { type Cursor, follow, START, type VerifiedLine } from '../client/chain.ts';
import type { ForumClient } from '../client/forum-client.ts';
import type { Input } from './command.ts';
import { forumOf } from './environment.ts';
import { tellEvent } from './tell-event.ts';
import { toChamberId, toInteger } from './values.ts';

export async function tail(input: Input): Promise<void> {
  const chamberId = toChamberId(input.args[0]);
  const forum = forumOf(input);
  const { out, after = '0' } = input.options;
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  try {
    if (out !== undefined) await tailToFile(forum, chamberId, out, stop.signal);
    else await tailToTerminal(forum, chamberId, toInteger('--after', after), { ...input, signal: stop.signal });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

interface Shown {
  readonly isJson: boolean;
  readonly signal: AbortSignal;
}

/** People see every line with what it refers to, so that the fold starts with event 1 whatever is shown. */
async function tailToTerminal(forum: ForumClient, chamberId: number, after: number, { isJson, signal }: Shown) {
  let state: ChamberState | null = null;
  for await (const { line, event } of forum.lines(chamberId, { after: isJson ? after : 0, signal })) {
    if (isJson) {
      console.log(line);
      continue;
    }
    state = evolveChamber(state, event);
    if (event.eventId > after) console.log(tellEvent(event, state, shortDid));
  }
}

async function tailToFile(forum: ForumClient, chamberId: number, path: string, signal: AbortSignal): Promise<void> {
  const file = await open(path, 'a+');
  try {
    for await (const { line } of forum.lines(chamberId, { after: await endOf(file, chamberId), signal })) {
      await file.appendFile(`${line}\n`);
    }
  } finally {
    await file.close();
  }
}

/** The cursor of the file's last whole line, having checked them all; what a kill left of another is cut off. */
async function endOf(file: FileHandle, chamberId: number): Promise<Cursor> {
  const text = await file.readFile('utf8');
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (whole !== text) await file.truncate(Buffer.byteLength(whole));
  const read = (cursor: Cursor, line: string): VerifiedLine => follow(cursor, chamberId, line);
  return whole.split('\n').slice(0, -1).reduce(read, START);
}

/** Enough of a DID to tell members apart. */
function shortDid(did: string): string {
  return did.slice(-8);
}
