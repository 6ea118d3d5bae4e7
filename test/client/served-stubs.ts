// A service that serves the key directory and the lines of one chamber, some of which are withheld.
import { readFileSync } from 'node:fs';
import { withhold } from '../../src/crypto/stub.ts';
import { signWith } from '../../src/keys/private-key.ts';
import type { ServiceKey } from '../../src/keys/service-keys.ts';
import { fixedKeys } from '../audit/sample.ts';
import { HOUR, START } from '../kit/clock.ts';
import { serve } from '../kit/serve.ts';

export const LOG = 'c0ffee00'.repeat(4);
const KEYS = fixedKeys(LOG);
export const LINES = readFileSync(
  new URL('../../fixtures/logs/chamber-with-amendments.ndjson', import.meta.url),
  'utf8',
)
  .trimEnd()
  .split('\n');
/** Event 10 is a comment. */
export const COMMENT = 10;

export function stubOf(eventId: number, terms: { readonly at?: number; readonly log?: string } = {}): string {
  const { seed, publicKey } = KEYS.all('receipts')[0] as ServiceKey;
  const key = { publicKey, sign: signWith(seed) };
  const made = withhold(LINES[eventId - 1] as string, { at: START + HOUR, reason: 'abuse', log: LOG, key, ...terms });
  if ('refused' in made) throw new Error(made.refused);
  return made.stub;
}

/** Serves the lines with the given one in place of the comment; resolves to the URL. */
export async function serveWith(line: string, keys: readonly object[] = KEYS.directory().keys): Promise<string> {
  const lines = LINES.with(COMMENT - 1, line);
  return await serve(async ({ url: path = '' }, response) => {
    const { pathname, searchParams } = new URL(path, 'http://service');
    response.setHeader('Log-Id', LOG);
    if (pathname.startsWith('/.well-known/')) {
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }));
      return;
    }
    const rest = lines.slice(Number(searchParams.get('after')));
    response.setHeader('content-type', 'application/x-ndjson').end(rest.map((each) => `${each}\n`).join(''));
  });
}
