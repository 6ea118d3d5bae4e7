import { type FileHandle, open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { phaseOf } from '../../projections/phase-ends.ts';
import { ChamberFold } from '../client/chamber-fold.ts';
import { ClientError } from '../client/error.ts';
import { type Cursor, follow, START } from '../client/events.ts';
import type { ForumClient } from '../client/forum-client.ts';
import { parseDid } from '../crypto/did-key.ts';
import { StubReader } from '../crypto/stub-reader.ts';
import { shortAgent } from '../vocabulary/short.ts';
import type { Phase } from '../vocabulary/values.ts';
import { visibleLine } from '../vocabulary/visible.ts';
import { auditCommand } from './audit-command.ts';
import { CHAMBER_ARGUMENT, type CommandSpec, type Input, SERVICE_OPTIONS } from './command.ts';
import { forumOf, untilInterrupted } from './environment.ts';
import { narrate, phaseHeading } from './narrate.ts';
import { CommandError, toPrintedLine } from './output.ts';
import { toChamberId, toInteger } from './values.ts';
import { isRegularFile, writeWhole } from './write-whole.ts';

export const logCommands: readonly CommandSpec[] = [
  {
    name: 'chamber tail',
    summary: "Follows a chamber's events until interrupted, and verifies the hash chain",
    args: CHAMBER_ARGUMENT,
    options: {
      '--after <event>': 'start after this event (default: 0, everything)',
      '--out <file>':
        'append the lines to the file and resume where it ends; the file has each event once, even if the command was killed',
      ...SERVICE_OPTIONS,
    },
    examples: ['chamber tail 1', 'chamber tail 1 --json', 'chamber tail 1 --out=chamber-1.ndjson'],
    run: tail,
  },
  {
    name: 'tail',
    summary: 'Follows the events of all chambers until interrupted',
    options: {
      '--after <cursor>': 'start after this event, given as CHAMBER:EVENT (default: 0, everything)',
      ...SERVICE_OPTIONS,
    },
    examples: ['tail', 'tail --after=7:12 --json'],
    run: tailAll,
  },
  {
    name: 'export',
    summary: "Writes a chamber's lines exactly as stored, and verifies the hash chain",
    args: { '<url-or-id>': 'the base URL of the service, or the chamber', '[id]': 'the chamber, after a URL' },
    usage: '[url] <id> [options]',
    options: {
      '--out <file>': 'the file to write, completely or not at all (default: standard output)',
      '--with-accounts <file>': "the file to write the members' accounts to, for audit --accounts",
      '--force': 'replace the files if they exist',
      ...SERVICE_OPTIONS,
    },
    examples: [
      'export http://127.0.0.1:8787 1 > chamber-1.ndjson',
      'export 1 --out=chamber-1.ndjson --with-accounts=accounts-1.ndjson',
    ],
    run: exportLines,
  },
  auditCommand,
];

async function tail(input: Input): Promise<void> {
  const { out, after = '0' } = input.options;
  const chamberId = toChamberId(input.args[0]);
  await untilInterrupted(async (signal) => {
    const target = { forum: forumOf(input), chamberId, signal };
    try {
      if (out !== undefined) await tailToFile(target, out);
      else await tailToTerminal(target, toInteger('--after', after, 0), input.isJson);
    } catch (error) {
      if (!(error instanceof ClientError) || error.head === undefined) throw error;
      throw new CommandError('verification', `the service's log now ends at event ${error.head}; ${RESTORED_NOTE}`);
    }
  });
}

const CURSOR = /^(0|[1-9]\d*:[1-9]\d*)$/;

async function tailAll(input: Input): Promise<void> {
  const { after = '0' } = input.options;
  if (!CURSOR.test(after)) throw new CommandError('usage', '--after must be CHAMBER:EVENT, e.g. 7:12, or 0');
  await untilInterrupted(async (signal) => {
    for await (const { line, event, cursor } of forumOf(input).allLines({ after, signal })) {
      const { did, type } = event;
      const text = `${cursor.padStart(10)}  ${(did === null ? 'relayer' : shortAgent(did)).padEnd(9)} ${type}`;
      console.log(input.isJson ? toPrintedLine(line) : visibleLine(text));
    }
  });
}

interface Target {
  readonly forum: ForumClient;
  readonly chamberId: number;
  readonly signal: AbortSignal;
}

/** Reads from event 1 unless the output is JSON, because the text about an event needs the state before it. */
async function tailToTerminal(target: Target, after: number, isJson: boolean): Promise<void> {
  await requireHead(target, after, '--after');
  const { forum, chamberId, signal } = target;
  const fold = new ChamberFold(forum.service.limits);
  let shown: Phase | undefined;
  for await (const { line, event } of forum.lines(chamberId, { after: isJson ? after : 0, signal })) {
    if (isJson) {
      console.log(toPrintedLine(line));
      continue;
    }
    const state = fold.take(event);
    if (event.eventId <= after) continue;
    const phase = state.settlement.committed === null ? phaseOf(state, event) : 'COMMITTED';
    if (phase !== shown) console.log(phaseHeading(phase));
    shown = phase;
    console.log(narrate(event, state, shortAgent));
  }
}

const RESTORED_NOTE = 'a service restored from a backup has lost later events and continues with different ones';

async function requireHead({ forum, chamberId, signal }: Target, after: number, source: string): Promise<void> {
  if (after === 0) return;
  try {
    await forum.history(chamberId, { after, signal }).next();
  } catch (error) {
    if (!(error instanceof ClientError) || error.head === undefined) throw error;
    throw new CommandError(
      'usage',
      `${source}: event ${after} is beyond the last event, ${error.head}; ${RESTORED_NOTE}`,
    );
  }
}

async function tailToFile(target: Target, path: string): Promise<void> {
  await isRegularFile(path);
  const { forum, chamberId, signal } = target;
  const file = await open(path, 'a+');
  let resumedAfter = 0;
  try {
    const end = await endOf(file, path, chamberId);
    await requireHead(target, end.eventId, path);
    resumedAfter = end.eventId;
    for await (const { line } of forum.lines(chamberId, { after: end, signal })) {
      await file.appendFile(`${line}\n`);
      resumedAfter = 0;
    }
  } catch (error) {
    const isBroken = error instanceof ClientError && error.code === 'CLIENT_ERR_CHAIN';
    if (!isBroken || resumedAfter === 0) throw error;
    const problem = `event ${resumedAfter + 1} of the service does not follow its last line`;
    throw new CommandError('verification', `${path} is not the log of this chamber: ${problem}; ${RESTORED_NOTE}`);
  } finally {
    await file.close();
  }
}

/** Accepts every stub: the stubs in the file were verified before they were written. */
const writtenStubs = new StubReader(() => undefined);

/** Checks the file's lines and truncates a partial last line, which a killed command may have left. */
async function endOf(file: FileHandle, path: string, chamberId: number): Promise<Cursor> {
  const text = await file.readFile('utf8');
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  let cursor = START;
  for (const line of whole.split('\n').slice(0, -1)) {
    try {
      cursor = follow(cursor, chamberId, line, { stubs: writtenStubs });
    } catch {
      const event = cursor.eventId + 1;
      throw new CommandError('verification', `${path} is damaged: line ${event} is not event ${event} of the chamber`);
    }
  }
  if (whole !== text) await file.truncate(Buffer.byteLength(whole));
  return cursor;
}

/** The highest MEMBERS_MAX that a service accepts. */
const MEMBERS_MAX = 100_000;

async function exportLines(input: Input): Promise<void> {
  const { out, force, 'with-accounts': accountsPath } = input.options;
  const [first = '', second] = input.args;
  const source = second === undefined ? input : { ...input, options: { ...input.options, url: first } };
  const forum = forumOf(source);
  const lines = forum.history(toChamberId(second ?? first));
  const dids = new Set<string>();
  const texts = async function* () {
    for await (const { line, event } of lines) {
      const { did, payload } = event;
      if ('accountEventId' in payload && did !== null && !dids.has(did) && parseDid(did) !== undefined) dids.add(did);
      if (dids.size > MEMBERS_MAX)
        throw new CommandError('verification', `the lines name more than ${MEMBERS_MAX} agents`);
      yield `${line}\n`;
    }
  };
  const accounts = async function* () {
    for (const did of dids) for await (const { line } of forum.accountHistory(did)) yield `${line}\n`;
  };
  const printed = async function* () {
    for await (const text of texts()) yield toPrintedLine(text);
  };
  if (out === undefined) await pipeline(printed, process.stdout, { end: false });
  else await writeWhole(out, texts(), force !== undefined);
  // The accounts are read after the chamber's lines, so that they include every account line that the chamber refers to.
  if (accountsPath !== undefined) await writeWhole(accountsPath, accounts(), force !== undefined);
}
