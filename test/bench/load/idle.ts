// Consumers of quiet chambers, which stay connected until this process ends.
import { subscribe } from './subscriber.ts';

export interface IdleTask {
  readonly kind: 'idle';
  readonly authority: string;
  readonly chambers: readonly number[];
  readonly consumers: number;
}

export interface IdleResult {
  readonly consumers: number;
}

const HANDSHAKES_MAX = 100;

export async function driveIdle({ authority, chambers, consumers }: IdleTask): Promise<IdleResult> {
  for (let from = 0; from < consumers; from += HANDSHAKES_MAX) {
    const length = Math.min(HANDSHAKES_MAX, consumers - from);
    await Promise.all(
      Array.from({ length }, (_, index) => {
        const path = `/chambers/${chambers[(from + index) % chambers.length]}/stream`;
        return subscribe({ authority, path, onMessages: unexpected, onEnd: fail });
      }),
    );
  }
  return { consumers };
}

function unexpected(): never {
  throw new Error('a quiet chamber sent data');
}

function fail(error: Error): never {
  throw error;
}
