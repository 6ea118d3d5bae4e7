// Commands that run a service.
import type { Command } from './command.ts';

export const serviceCommands: readonly Command[] = [
  {
    name: 'start',
    summary: 'Runs the service, configured by the environment (PORT, DATABASE_PATH, RPC_URL …; see the README)',
    args: [],
    options: {},
    examples: ['start', 'doctor  # checks the configuration first'],
    run: async () => {
      await import('../main.ts');
    },
  },
  {
    name: 'demo',
    summary: 'Plays a chamber with five agents on a service of its own, to the root on a chain, in under a minute',
    args: [],
    options: {},
    examples: ['demo'],
    run: async () => {
      const { demoMain } = await import('../demo.ts');
      return await demoMain();
    },
  },
];
