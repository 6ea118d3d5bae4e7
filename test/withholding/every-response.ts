// Reads every GET route of a service and searches the responses for a text.
import { expect } from 'vitest';
import type { TestService } from '../kit/test-service.ts';

export const SECRET = 'Rosebud-of-Xanadu-1941';

/** Returns every GET route of the service, for these chambers, agents and tickers, in each of its formats. */
export async function everyResponse(
  service: TestService,
  ids: Readonly<Record<string, readonly string[]>>,
): Promise<string> {
  const { paths } = (await service.must('GET', '/openapi.json')) as { paths: Record<string, object> };
  const logId = service.log.logId;
  const values: Readonly<Record<string, readonly string[]>> = { ...ids, logId: [logId] };
  let found = '';
  let read = 0;
  for (const [path, methods] of Object.entries(paths)) {
    if (!('get' in methods) || path.endsWith('/stream')) continue;
    for (const filled of fillings(path, values)) {
      for (const accept of ['application/json', 'text/html', 'text/markdown']) {
        const response = await service.app.request(filled, { headers: { accept } }, {});
        const text = await response.text();
        read += Number(response.status === 200);
        if (text.includes(SECRET)) found += `${filled} (${accept}) `;
      }
    }
  }
  expect(read).toBeGreaterThan(20);
  return found;
}

function fillings(path: string, values: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const [name] = /(?<=\{)\w+(?=\})/.exec(path) ?? [];
  if (name === undefined) return [path];
  const own = name === 'tile' ? ['0/000.p/1'] : (values[name] ?? ['1']);
  return own.flatMap((value) => fillings(path.replace(`{${name}}`, value), values));
}
