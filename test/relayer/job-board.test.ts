import { expect, test } from 'vitest';
import { JobBoard } from '../../src/relayer/job-board.ts';

function controlledStep() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let runs = 0;
  const step = async () => {
    runs++;
    await promise;
  };
  return { step, end: resolve, runs: () => runs };
}

test('a job has one step at a time', async () => {
  const board = new JobBoard();
  const first = controlledStep();
  const running = board.run('a', board.logicalTime, first.step);
  await board.run('a', board.logicalTime, first.step);
  expect(first.runs()).toBe(1);
  first.end();
  await running;
  await board.run('a', board.logicalTime, first.step);
  expect(first.runs()).toBe(2);
});

test('a step does not run on state that was read before the previous step ended', async () => {
  const board = new JobBoard();
  const first = controlledStep();
  const running = board.run('a', board.logicalTime, first.step);
  const readAfter = board.logicalTime;
  first.end();
  await running;
  const next = controlledStep();
  next.end();
  await board.run('a', readAfter, next.step);
  expect(next.runs()).toBe(0);
  await board.run('b', readAfter, next.step);
  await board.run('a', board.logicalTime, next.step);
  expect(next.runs()).toBe(2);
});

test('a failing step ends, and rejects with its error', async () => {
  const board = new JobBoard();
  const fail = async () => Promise.reject(new Error('no luck'));
  await expect(board.run('a', board.logicalTime, fail)).rejects.toThrow('no luck');
  await board.idle();
  await expect(board.run('a', board.logicalTime, fail)).rejects.toThrow('no luck');
});

test('no more steps run at the same time than there are slots, and the others run later', async () => {
  const board = new JobBoard();
  const hanging = Array.from({ length: 20 }, controlledStep);
  const running = hanging.map(({ step }, index) => board.run(`${index}`, board.logicalTime, step));
  await new Promise((resolve) => setImmediate(resolve));
  const started = hanging.filter(({ runs }) => runs() === 1).length;
  expect(started).toBe(16);
  for (const { end } of hanging) end();
  await Promise.all(running);
  expect(hanging.every(({ runs }) => runs() === 1)).toBe(true);
});
