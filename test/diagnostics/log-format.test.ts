import { expect, it } from 'vitest';
import { prettyLine } from '../../src/diagnostics/log-format.ts';

it('a human-readable log line has the time, the level, the message and the values', () => {
  const line = { level: 30, time: 0, pid: 1, hostname: 'h', msg: 'started', version: '1', limits: { a: 1 } };
  expect(prettyLine(JSON.stringify(line))).toBe('1970-01-01T00:00:00.000Z INFO  started  version=1  limits={"a":1}');
});

it('a human-readable log line shows an error with its stack, without terminal control characters', () => {
  const line = { level: 50, time: 0, msg: 'a\u001b[2Jb', err: { stack: 'Error: x\n    at y' } };
  expect(prettyLine(JSON.stringify(line))).toBe('1970-01-01T00:00:00.000Z ERROR a [2Jb\nError: x\n    at y');
});
