import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/main.ts';
import { findCommand, parseInput } from '../../src/cli/parse.ts';
import { run } from './run.ts';

describe('wrong usage', () => {
  it.each([
    ['an unknown command', ['strt'], 'did you mean “start”'],
    ['an unknown group', ['chambr', 'list'], 'did you mean “chamber list”'],
    ['an unknown command of a group', ['move', 'propos'], 'did you mean “move propose”'],
    ['an unknown option', ['chamber', 'list', '--phse=debate'], 'did you mean --phase?'],
    ['an unknown short option', ['chamber', 'list', '-l'], 'unknown option -l'],
    ['an option without its value', ['chamber', 'list', '--limit'], '--limit needs a value: --limit=COUNT'],
    ['an option that swallows the next', ['move', 'debate', '1', '--comment', '--idea=x'], '--comment needs a value'],
    ['a switch with a value', ['chamber', 'list', '--json=yes'], '--json takes no value'],
    ['a missing argument', ['chamber', 'show'], 'ID is missing'],
    ['a missing option', ['move', 'debate', '1'], '--comment=TEXT is missing'],
    ['an argument too many', ['chamber', 'show', '1', '2'], '“2” is one argument too many'],
    ['an id that is none', ['chamber', 'show', 'one'], 'ID must be an integer of at least 1'],
    ['a phase that is none', ['chamber', 'list', '--phase=talk'], '“talk” is no phase'],
    ['a length that is none', ['chamber', 'create', '--name=x', '--lobby=soon'], '“soon” is no length of a phase'],
    ['a base URL that is none', ['chamber', 'list', '--url=127.0.0.1'], 'the base URL must be like'],
  ])('is told in one sentence: %s', async (_, words, told) => {
    const { exitCode, out, err } = await run(words);
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' });
    expect(err).toContain(told);
    expect(err.split('\n')).toHaveLength(1);
  });

  it('is JSON where JSON was asked for', async () => {
    const { exitCode, err } = await run(['chamber', 'list', '--limt=1', '--json']);
    expect(JSON.parse(err)).toEqual({ error: 'usage', detail: expect.stringContaining('--limit'), exitCode });
  });

  it('is an unknown variable of ours, not of others', async () => {
    const misspelt = await run(['move', 'join', '1'], { CHAMBERS_KEYFILE: '/tmp/key' });
    expect(misspelt).toMatchObject({ exitCode: 2, err: expect.stringContaining('did you mean CHAMBERS_KEY_FILE?') });
    const others = await run(['move', 'join', '--help'], { CHAMBER_MUSIC: '1' });
    expect(others.exitCode).toBe(0);
  });

  it('is a move without a key', async () => {
    const { exitCode, err } = await run(['move', 'join', '1', '--key=/nowhere/agent.json']);
    expect(exitCode).toBe(2);
    expect(err).toContain('chambers agent new');
  });
});

it('tells its version', async () => {
  expect(await run(['--version'])).toMatchObject({ exitCode: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
});

describe('help', () => {
  it('lists every command', async () => {
    const { exitCode, out } = await run(['--help']);
    expect(exitCode).toBe(0);
    const lines = out.split('\n');
    for (const { name, summary } of COMMANDS) {
      expect(lines.filter((line) => line.startsWith(`  ${name} `) && line.endsWith(`  ${summary}`))).toHaveLength(1);
    }
  });

  it.each(COMMANDS.map((command) => [command.name, command] as const))(
    'of %s has examples that parse',
    async (name, command) => {
      const { exitCode, out } = await run([...name.split(' '), '--help']);
      expect(exitCode).toBe(0);
      expect(command.examples.length).toBeGreaterThan(0);
      for (const example of command.examples) {
        expect(out).toContain(example);
        const words = wordsOf(example);
        if (words !== null) expect(parseInput(findCommand(words, COMMANDS), words).isHelp).toBe(false);
      }
    },
  );
});

/** The words of an example as a shell makes them; null where the shell does more than that. */
function wordsOf(example: string): string[] | null {
  if (/[|…#]/.test(example)) return null;
  const words = example.replace(/ > .*/, '').match(/(?:[^\s"]|"[^"]*")+/g) ?? [];
  return words.map((word) => word.replaceAll('"', ''));
}
