// Commands that read a lot from a briefly unreachable service: the first attempt of each request fails.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { serve } from '../kit/serve.ts';
import { debating, run as serveForum } from '../kit/service.ts';
import { temporaryDatabase, temporaryFolder } from '../kit/temporary.ts';
import { eventually } from '../kit/until.ts';
import { type Run, run } from './run.ts';

/**
 * A proxy that resets the first connection for each `kind` of request, responds to the second with a gateway's 502, and cuts a chamber's
 * third page in its first line and its fourth page in the middle.
 */
async function away(kind: (path: string) => string) {
  const running = await serveForum({ DATABASE_PATH: temporaryDatabase() });
  const { debate, id } = await debating(running);
  for (let i = 0; i < 20; i++) await debate(`comment ${i}`);
  const { log, tree } = running.service.forum.store;
  await eventually(async () => expect((await tree.checkpoint())?.size).toBe(await log.lastPlace()), 20_000);
  const asked = new Map<string, number>();
  const url = await serve(async (request, response) => {
    const path = request.url ?? '';
    const count = (asked.get(kind(path)) ?? 0) + 1;
    asked.set(kind(path), count);
    if (count === 1) return request.socket.destroy();
    if (count === 2) return response.writeHead(502).end('bad gateway');
    const upstream = await fetch(running.url + path, {
      headers: { 'accept-encoding': 'identity' },
      redirect: 'manual',
    });
    const body = Buffer.from(await upstream.arrayBuffer());
    response.writeHead(upstream.status, Object.fromEntries(upstream.headers));
    if (count > 4 || !path.startsWith('/chambers/1/events')) return response.end(body);
    return response.write(body.subarray(0, count === 3 ? 10 : body.length / 2), () =>
      setTimeout(() => request.socket.destroy(), 50),
    );
  });
  return { url, id, direct: running.url };
}

it('an audit continues after a failed request or page with --patience, and exits with 6 without it', {
  timeout: 60_000,
}, async () => {
  const { url, id, direct } = await away((path) => path.replace(/\?.*/, ''));
  const audit = (at: string, ...words: string[]) =>
    run(['audit', at, `--chamber=${id}`, `--origin=${direct}`, '--json', ...words]);
  expect((await audit(url)).exitCode).toBe(6);
  const [patient, whole] = [await audit(url, '--patience=20s'), await audit(direct)];
  const named = ({ out, ...rest }: Run) => ({ ...rest, out: out.replaceAll(direct, url) });
  expect(named(patient)).toEqual(named(whole));
  expect(whole.out).toContain('"lines"');
});

it('mirror --once copies the whole log with --patience, and exits with 6 without it', { timeout: 60_000 }, async () => {
  const { url } = await away(() => 'any');
  const folder = join(temporaryFolder(), 'mirror');
  const mirror = (...words: string[]) => run(['mirror', url, folder, '--once', '--json', ...words]);
  expect((await mirror()).exitCode).toBe(6);
  expect(await mirror('--patience=30s')).toMatchObject({ exitCode: 0, out: expect.stringContaining('"size":') });
});

it('tail exits with 6 if there is no response within --patience', async () => {
  for (const words of [['tail'], ['chamber', 'tail', '1']])
    expect((await run([...words, '--url=http://127.0.0.1:1', '--patience=0s'])).exitCode).toBe(6);
});
