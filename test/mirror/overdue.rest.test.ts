// Wrong responses of a service to a mirror that looks for overdue lines. The mirror repeats each request for some seconds.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Inconsistent } from '../../src/mirror/mirror.ts';
import { NotServed } from '../../src/mirror/published-log.ts';
import { Signer } from '../kit/signer.ts';
import { type LoggedLine, lineAfter, type StaticLog, serveLog } from '../kit/static-log.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { step } from './static-mirror.ts';

const ACCOUNT = new Signer(new Uint8Array(32).fill(9)).did;

describe('a service that hides lines from a mirror', () => {
  const ts = new Date(Date.now() - 61_000).toISOString();
  const covered = [lineAfter([], ACCOUNT), lineAfter([], 1), lineAfter([], 2)];
  const entries = [...covered, lineAfter(covered, 2, { ts }), lineAfter(covered, ACCOUNT, { ts })];
  /** The mirror has three entries, and the service shows no later checkpoint. */
  const stepped = async (lie: StaticLog['lie'], served: readonly LoggedLine[] = entries) => {
    const { url, replace } = await serveLog({ entries: covered });
    const folder = temporaryFolder();
    await step(url, folder);
    replace({ entries, served, sizes: [covered.length], ...(lie && { lie }) });
    return await step(url, folder).catch((error: unknown) => error);
  };

  it.each<[string, StaticLog['lie'], RegExp]>([
    [
      'an empty list',
      (path) => (path === '/chambers' ? '[]' : undefined),
      /^the service does not list chamber [12], although the folder has lines of it;/,
    ],
    [
      'a list without one of its chambers',
      (path) => (path === '/chambers' ? '[{"chamberId":1}]' : undefined),
      /^the service does not list chamber 2, although the folder has lines of it;/,
    ],
    [
      '404 for one of its chambers',
      (path) => (path === '/chambers/2/events' ? 404 : undefined),
      /^the service does not serve chamber 2, although the folder has lines of it;/,
    ],
    [
      '404 for one of its accounts',
      (path) => (path.startsWith('/agents/') ? 404 : path === '/chambers/2/events' ? '' : undefined),
      /^the service does not serve did:key:\S+, although the folder has lines of it;/,
    ],
    [
      'no new lines for chambers, but one for an account',
      (path) => (path === '/chambers/2/events' ? '' : undefined),
      /^event 2 of did:key:\S+ is not covered by/,
    ],
  ])('a service is inconsistent after %s', { timeout: 20_000 }, async (_, lie, problem) => {
    const found = await stepped(lie);
    expect(found).toBeInstanceOf(Inconsistent);
    expect((found as Inconsistent).message).toMatch(problem);
    expect(JSON.parse(readFileSync((found as Inconsistent).file, 'utf8'))).toMatchObject({
      problem: expect.stringMatching(/\S/),
      checkpoint: expect.stringContaining('static.example'),
    });
  });

  it.each<[string, StaticLog['lie']]>([
    ['404 for the list', (path) => (path === '/chambers' ? 404 : undefined)],
    ['no list', (path) => (path === '/chambers' ? '{}' : undefined)],
    ['a list of other objects', (path) => (path === '/chambers' ? '[{}]' : undefined)],
    ['a list in ascending order', (path) => (path === '/chambers' ? '[{"chamberId":1},{"chamberId":2}]' : undefined)],
    ['a line that is not an event', (path) => (path === '/chambers/2/events' ? '{}\n' : undefined)],
    [
      'a line without a time',
      (path) => (path === '/chambers/2/events' ? `${lineAfter(covered, 2).line}\n` : undefined),
    ],
    ['another line', (path) => (path === '/chambers/2/events' ? `${covered[2]?.line}\n` : undefined)],
    [
      'a list with a chamber that it does not serve',
      (path) => (path === '/chambers' ? '[{"chamberId":3},{"chamberId":2},{"chamberId":1}]' : undefined),
    ],
  ])('a service’s response to a mirror is invalid: %s', { timeout: 20_000 }, async (_, lie) => {
    const found = await stepped(lie);
    expect(found).toBeInstanceOf(NotServed);
  });

  it('a service without new lines is sound', async () => {
    expect(await stepped(undefined, covered)).toMatchObject({ size: covered.length, added: 0 });
  });
});
