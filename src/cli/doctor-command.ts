// `chambers doctor`: what the service depends on, looked at before it is needed.
import { paint } from '../terminal.ts';
import type { Command, Input } from './command.ts';
import { EXIT } from './failure.ts';
import { print, table } from './print.ts';

export const doctorCommand: Command = {
  name: 'doctor',
  summary: 'Checks configuration, flags, disk, clock and chain of a service, and names the variable to set',
  args: [],
  options: {},
  examples: ['doctor', 'RPC_URL=https://rpc.example.org … chambers doctor --json'],
  run: doctor,
};

const COLOURS = { ok: 'green', warning: 'yellow', problem: 'red' } as const;

async function doctor({ isJson }: Input): Promise<number> {
  const { examine } = await import('../doctor.ts');
  const findings = await examine(process.env);
  const isHealthy = findings.every(({ level }) => level !== 'problem');
  const rows = findings.map(({ subject, level, variable, detail }) => [subject, level, variable, detail]);
  const lines = table(['SUBJECT', 'LEVEL', 'VARIABLE', 'FINDING'], rows, '');
  const coloured = lines.map((line, row) => {
    const level = findings[row - 1]?.level;
    return level === undefined ? line : paint(COLOURS[level], line);
  });
  print(isJson, { ok: isHealthy, findings }, coloured);
  return isHealthy ? EXIT.ok : EXIT.failure;
}
