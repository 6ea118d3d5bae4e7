// A service reveals a chamber line by line while its views are compared: old lines were withheld, new lines are growth.
import { describe, expect, it } from 'vitest';
import { runDebating } from '../kit/service.ts';
import { atEnd } from '../kit/temporary.ts';
import { audit } from './running-audit.ts';
import { openTamperingProxy } from './tampering-proxy.ts';

const SLOW = { timeout: 60_000 };
const COMMENTS = 8;

interface Given {
  /** The age of lines that appear during the comparison, by the service's clock. */
  readonly ageMs: number;
  /** The milliseconds by which the audit's clock is ahead. */
  readonly aheadMs?: number;
  /** The total number of revealed lines, one after each comparison. */
  readonly shown?: number;
  /** The milliseconds by which the Date header is behind the service's time. */
  readonly behindMs?: number;
}

/** Audits a chamber whose first read returns 3 lines, and each further read one more. */
async function audited({ ageMs, aheadMs = 0, shown = COMMENTS + 2, behindMs = 0 }: Given) {
  const { running, id, debate } = await runDebating();
  for (let i = 0; i < COMMENTS; i++) await debate(`comment ${i}`);
  running.clock.advance(ageMs);
  const { read: now } = running.clock;
  const proxy = await openTamperingProxy(running.url, () => now() - behindMs);
  atEnd(() => proxy.close());
  let count = 2;
  proxy.tamper = (path, text) => {
    if (path.startsWith(`/chambers/${id}/events?`)) {
      count = Math.min(count + 1, shown);
      return text
        .split(/(?<=\n)/)
        .filter((line) => line !== '' && JSON.parse(line).eventId <= count)
        .join('');
    }
    // A wrong response that only a comparison exposes.
    return path === `/chambers/${id}/merkle-preview` ? '{}' : text;
  };
  const clock = { read: () => now() + aheadMs };
  const { exitCode, checkOf } = await audit({ url: proxy.url, clock }, { chamber: id });
  const views = checkOf('views');
  return { exitCode, verdict: views?.verdict, note: views?.note, sentence: views?.findings.at(0)?.sentence };
}

describe('lines that appear while the views are compared', () => {
  const WITHHELD = 'event 4 was not served at first, although it is dated more than a minute earlier';

  it(
    'lines that appear during a comparison are broken if they predate the first read by more than a minute',
    SLOW,
    async () => {
      expect(await audited({ ageMs: 600_000 })).toMatchObject({
        exitCode: 3,
        verdict: 'broken',
        sentence: `${WITHHELD}, by the service’s own clock`,
      });
    },
  );

  it('one old line among the appearing ones is broken, and the audit still compares the views', SLOW, async () => {
    expect(await audited({ ageMs: 600_000, shown: 4 })).toMatchObject({
      exitCode: 3,
      sentence: expect.stringContaining(WITHHELD),
    });
  });

  it('lines that appear are undecided if they are old only by the audit’s clock', SLOW, async () => {
    const byYours = { verdict: 'undecided', note: expect.stringContaining(`${WITHHELD} by your clock`) };
    expect(await audited({ ageMs: 0, aheadMs: 600_000 })).toMatchObject(byYours);
    expect(await audited({ ageMs: 600_000, behindMs: 590_000 })).toMatchObject(byYours);
  });

  it('new lines that appear during every comparison are growth, which is not evaluated', SLOW, async () => {
    expect(await audited({ ageMs: 59_000 })).toMatchObject({
      verdict: 'not evaluated',
      note: 'the chamber’s log grew during every comparison',
    });
  });
});
