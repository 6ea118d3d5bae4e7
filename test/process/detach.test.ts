import { once } from 'node:events';
import { expect, it, vi } from 'vitest';
import { detach } from '../../src/process/detach.ts';

it('reports a failure as a warning of the process', async () => {
  const warned = once(process, 'warning');
  const cause = new TypeError('the reason');
  detach(Promise.reject(cause));
  const [warning] = await warned;
  expect(warning).toMatchObject({ name: 'DetachedFailure', message: expect.stringContaining('the reason'), cause });
});

it('passes a failure to the caller, and reports only what the caller throws', async () => {
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

it('leaves no rejection without a handler', async () => {
  const onRejection = vi.fn();
  process.on('unhandledRejection', onRejection);
  const warned = once(process, 'warning');
  detach(Promise.reject(undefined));
  await warned;
  await new Promise(setImmediate);
  process.off('unhandledRejection', onRejection);
  expect(onRejection).not.toHaveBeenCalled();
});
