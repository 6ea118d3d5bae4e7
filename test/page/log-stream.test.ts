import { expect, it, vi } from 'vitest';
import { followLog } from '../../src/page/browser/log-stream.ts';

it('readers reconnect with jitter, so that they do not all return at once after the service restarts', () => {
  vi.useFakeTimers();
  const openedAt: number[] = [];
  class Refused {
    onclose = () => {};
    constructor() {
      openedAt.push(Date.now());
      setTimeout(() => this.onclose());
    }
    close() {}
  }
  vi.stubGlobal('WebSocket', Refused);
  const stop = new AbortController();
  try {
    const ignore = () => {};
    const listener = { onLine: ignore, onPhase: ignore, onConnection: ignore, onWithheld: ignore, signal: stop.signal };
    for (let reader = 0; reader < 50; reader++) followLog('ws://service.test/stream', listener);
    vi.advanceTimersByTime(300);
    const second = openedAt.slice(50, 100);
    expect(new Set(second).size).toBeGreaterThan(10);
  } finally {
    stop.abort();
    vi.useRealTimers();
  }
});
