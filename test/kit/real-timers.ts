// Fails a test file that leaves fake timers behind: its worker continues with other files, whose waits would never end.
import { afterAll, expect, vi } from 'vitest';

const REAL = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, Date };

afterAll(() => {
  // Mocks are restored before the next test, which may belong to another file.
  vi.restoreAllMocks();
  const replaced = Object.entries(REAL).flatMap(([name, real]) =>
    Reflect.get(globalThis, name) === real ? [] : [name],
  );
  Object.assign(globalThis, REAL);
  expect(replaced, 'timers that the tests of this file did not restore').toEqual([]);
});
