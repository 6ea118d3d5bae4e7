// A service with two histories: its database is copied, and each of two groups of agents is served from one copy, with the same
// address and clock.
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Agent, ForumClient } from '../../src/client/index.ts';
import type { Service } from '../../src/service/start.ts';
import { REGISTRATION } from '../client/live-service.ts';
import { AdvancedClock, passing } from './clock.ts';
import { openService, type Settings } from './open-service.ts';
import { atEnd, temporaryFolder } from './temporary.ts';
import { eventually } from './until.ts';

const PUBLIC_URL = 'http://forum.test';
const SECOND_MILLIS = 1_000;

export class ForkedService {
  readonly folder = temporaryFolder();
  readonly clock = new AdvancedClock();
  /** The URL of the copy that serves these agents. */
  target = '';

  async open(copy: 'one' | 'two', settings: Settings = {}): Promise<Service> {
    mkdirSync(join(this.folder, copy), { recursive: true });
    const DATABASE_PATH = join(this.folder, copy, 'chambers.db');
    const service = await openService({ DATABASE_PATH, PUBLIC_URL, ...settings }, { clock: passing(this.clock.read) });
    atEnd(() => service.stop());
    this.target = service.url;
    return service;
  }

  /** Copies the database; the service must have stopped. */
  fork(): void {
    cpSync(join(this.folder, 'one'), join(this.folder, 'two'), { recursive: true });
    rmSync(join(this.folder, 'two', 'chambers.db.lock'), { force: true });
  }

  /** Returns a registered agent that keeps receipts beside its key. */
  async agent(name: string): Promise<Agent> {
    const agent = await this.agentAgain(name);
    await agent.register(REGISTRATION);
    return agent;
  }

  agentAgain(name: string): Promise<Agent> {
    const forum = new ForumClient(PUBLIC_URL, {
      fetch: (url, init) => fetch(url.replace(PUBLIC_URL, this.target), init),
    });
    return Agent.fromKeyFile(forum, this.keyFile(name));
  }

  keyFile(name: string): string {
    return join(this.folder, `${name}.json`);
  }

  advanceSeconds(seconds: number): void {
    this.clock.advance(seconds * SECOND_MILLIS);
  }
}

/** Resolves to the checkpoint once it covers all lines. */
export function covered({ forum: { store } }: Service): Promise<string> {
  return eventually(async () => {
    const checkpoint = await store.tree.checkpoint();
    expect(checkpoint?.size).toBe(await store.log.lastPlace());
    return checkpoint?.note ?? '';
  }, 20_000);
}

/** Returns the published thumbprint of the receipt key, and the verifier key of the checkpoints. */
export async function publishedKeys({ url }: Service): Promise<readonly [string, string]> {
  const read = async (path: string) => (await fetch(url + path)).json();
  const { keys } = (await read('/.well-known/http-message-signatures-directory')) as {
    readonly keys: readonly { readonly kid: string; readonly purpose: string }[];
  };
  const { log } = (await read('/')) as { readonly log: { readonly checkpointKey: string } };
  return [keys.find(({ purpose }) => purpose === 'receipts')?.kid ?? '', log.checkpointKey];
}
