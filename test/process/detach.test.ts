import { once } from 'node:events';
import { expect, it, vi } from 'vitest';
import { detach } from '../../src/process/detach.ts';

it('detach reports a failure as a warning of the process', async () => {
  const warned = once(process, 'warning');
  const cause = new TypeError('the reason');
  detach(Promise.reject(cause));
  const [warning] = await warned;
  expect(warning).toMatchObject({ name: 'DetachedFailure', message: expect.stringContaining('the reason'), cause });
});

it('detach passes a failure to the handler, and reports only what the handler throws', async () => {
  const warned = once(process, 'warning');
  const seen: unknown[] = [];
  detach(Promise.reject(new Error('expected')), (error) => {
    seen.push(error);
  });
  detach(Promise.reject(new Error('expected')), () => {
    throw new Error('from the handler');
  });
  const [warning] = await warned;
  expect(seen).toEqual([new Error('expected')]);
  expect(warning.message).toContain('from the handler');
});

it('detach leaves no unhandled rejection', async () => {
  const onRejection = vi.fn();
  process.on('unhandledRejection', onRejection);
  const warned = once(process, 'warning');
  detach(Promise.reject(undefined));
  await warned;
  await new Promise(setImmediate);
  process.off('unhandledRejection', onRejection);
  expect(onRejection).not.toHaveBeenCalled();
});
