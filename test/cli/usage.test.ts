import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it, vi } from 'vitest';
import { toProgram } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/main.ts';
import { moveCommands } from '../../src/cli/move-commands.ts';
import { chamberMoves } from '../../src/moves/registry.ts';
import { CLI } from '../kit/programs.ts';
import { temporaryFolder } from '../kit/temporary.ts';
import { run } from './run.ts';

const ADDRESS = `0x${'11'.repeat(20)}`;

describe('wrong usage', () => {
  it.each([
    ['an unknown command', ['strt'], "unknown command 'strt': did you mean start?"],
    ['an unknown group', ['chambr', 'list'], "unknown command 'chambr': did you mean chamber?"],
    ['an unknown command of a group', ['move', 'propos'], "unknown command 'propos': did you mean propose?"],
    ['an unknown command without a similar one', ['frobnicate'], "unknown command 'frobnicate'; see chambers --help"],
    ['a group without a command', ['agent'], 'chambers agent needs a command: new, register, retire, show'],
    ['an unknown option', ['chamber', 'list', '--phse=debate'], "'--phse': did you mean --phase?"],
    [
      'an unknown option without a similar one',
      ['chamber', 'list', '--frobnicate'],
      '; see chambers chamber list --help',
    ],
    [
      'an unknown option after a value that looks like one',
      ['move', 'debate', '1', '--comment', '-1', '--ide=x'],
      "'--ide'",
    ],
    ['an unknown short option', ['chamber', 'list', '-l'], "unknown option '-l'"],
    ['an option without its value', ['chamber', 'list', '--limit'], "option '--limit <count>' argument missing"],
    [
      'an option that takes the next option as its value',
      ['move', 'debate', '1', '--comment', '--idea=x'],
      "'--comment <text>' argument",
    ],
    ['a switch with a value', ['chamber', 'list', '--json=yes'], "unknown option '--json=yes'"],
    ['a missing argument', ['chamber', 'show'], "missing required argument 'id'; see chambers chamber show --help"],
    [
      'a missing option',
      ['agent', 'register', `--wallet=${ADDRESS}`],
      "required option '--email <email>' not specified",
    ],
    ['a missing option of a move', ['move', 'debate', '1'], "required option '--comment <text>' not specified"],
    ['a value that the move rejects', ['move', 'propose', '1', '--name=x', '--ticker=a b'], '--ticker must be 1 to 32'],
    ['a refinement that is not an object', ['move', 'debate', '1', '--comment=x', '--refinement=[1]'], 'a JSON object'],
    [
      'too many arguments',
      ['chamber', 'show', '1', '2'],
      "too many arguments for 'show': expected 1 argument but got 2",
    ],
    ['a wrong id', ['chamber', 'show', 'one'], 'the chamber id must be an integer of at least 1, not “one”'],
    ['a wrong phase', ['chamber', 'list', '--phase=talk'], '“talk” is not a phase: use one of LOBBY'],
    ['a wrong duration', ['chamber', 'create', '--name=x', '--lobby=soon'], '“soon” is not a duration'],
    ['a wrong allocation', ['move', 'commit', '1', 'idea-1'], '“idea-1” is not an allocation: use IDEA=BPS'],
    ['a balance without its token', ['chamber', 'create', '--name=x', '--min-balance=5'], 'need --token'],
    [
      'an invalid --token-at',
      ['chamber', 'create', '--name=x', '--token=0x0', '--token-at=now'],
      '--token-at must be join',
    ],
    ['a missing list', ['chamber', 'create', '--name=x', '--admit=/nowhere/list'], '--admit: cannot read'],
    ['a wrong base URL', ['chamber', 'list', '--url=127.0.0.1'], 'the base URL must be like'],
    [
      'a database that does not exist',
      ['fsck', '/nowhere/chambers.db'],
      'cannot read the database /nowhere/chambers.db',
    ],
  ])('wrong usage is reported in one sentence: %s', async (_, words, detail) => {
    const { exitCode, out, err } = await run(words);
    expect({ exitCode, out }).toEqual({ exitCode: words[0] === 'fsck' ? 1 : 2, out: '' });
    expect(err).toContain(detail);
    expect(err.split('\n')).toHaveLength(1);
  });

  it('a usage error is reported as JSON with --json', async () => {
    const { exitCode, err } = await run(['chamber', 'list', '--limt=1', '--json']);
    expect(JSON.parse(err)).toEqual({ error: 'usage', detail: expect.stringContaining('--limit'), exitCode });
  });

  it('an unknown CHAMBERS_ variable is a usage error, unless it belongs to the service or to another program', async () => {
    const misspelt = await run(['move', 'join', '1'], { CHAMBERS_KEYFILE: '/tmp/key' });
    expect(misspelt).toMatchObject({ exitCode: 2, err: expect.stringContaining('CHAMBERS_KEY_FILE') });
    const others = await run(['doctor'], { CHAMBER_MUSIC: '1', CHAMBERS_OPEN_PER_DID_MAX: '16', CHAIN: 'none' });
    expect(others).toMatchObject({ exitCode: 0, err: '' });
  });

  it('a move without a key is a usage error', async () => {
    const { exitCode, err } = await run(['move', 'join', '1', '--key=/nowhere/agent.json']);
    expect(exitCode).toBe(2);
    expect(err).toContain('chambers init --key=/nowhere/agent.json');
  });
});

it('the command line accepts --name value as well as --name=value, and --json anywhere', async () => {
  const { exitCode, err } = await run(['--json', 'chamber', 'list', '--url', 'http://127.0.0.1:9']);
  expect(exitCode).toBe(6);
  expect(JSON.parse(err)).toMatchObject({ error: 'CLIENT_ERR_UNREACHABLE' });
});

it('--version prints the version', async () => {
  expect(await run(['--version'])).toMatchObject({ exitCode: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
});

it('the command line has a command for every move', () => {
  expect(moveCommands.map(({ name }) => name).sort()).toEqual(
    Object.keys(chamberMoves)
      .map((operation) => `move ${operation}`)
      .sort(),
  );
});

describe('help', () => {
  it('help lists every command, even without arguments', async () => {
    const { exitCode, out } = await run(['--help']);
    expect(exitCode).toBe(0);
    const lines = out.split('\n');
    for (const { name, summary } of COMMANDS) {
      expect(lines.filter((line) => line.startsWith(`  ${name} `) && line.endsWith(`  ${summary}`))).toHaveLength(1);
    }
    expect(await run([])).toEqual({ exitCode: 2, out, err: '' });
    expect(await run(['help'])).toMatchObject({ exitCode: 0, out });
  });

  it.each([
    ['agent register', '(--wallet <address> | --wallet-key-file <file>) --email <email> [options]'],
    ['chamber create', '--name <name> [options]'],
    ['chamber tail', '<id> [options]'],
    ['move propose', '<id> --name <name> --ticker <ticker> [options]'],
    ['move commit', '<id> [idea=bps...] [options]'],
    ['export', '[url] <id> [options]'],
    ['backup', '<target> [database] [options]'],
  ])('the help of %s has its usage', async (name, usage) => {
    const { out } = await run([...name.split(' '), '--help']);
    expect(out.split('\n')[0]).toBe(`Usage: chambers ${name} ${usage}`);
  });

  it.each(COMMANDS.map((command) => [command.name, command] as const))(
    'the help of %s has examples that parse',
    async (name, command) => {
      const { exitCode, out } = await run([...name.split(' '), '--help']);
      expect(exitCode).toBe(0);
      expect(command.examples.length).toBeGreaterThan(0);
      for (const example of command.examples) {
        expect(out).toContain(`  chambers ${example}`);
        const words = wordsOf(example);
        const ran = vi.fn(async () => {});
        if (words === null) continue;
        await parse(words, ran);
        expect(ran).toHaveBeenCalledExactlyOnceWith(command, expect.anything());
      }
    },
  );
});

async function parse(words: string[], ran: Parameters<typeof toProgram>[2]): Promise<Command> {
  return await toProgram(COMMANDS, words, ran).parseAsync(words, { from: 'user' });
}

/** The words of an example as a shell splits them; null if the example needs more of a shell than that. */
function wordsOf(example: string): string[] | null {
  if (/[|…#]/.test(example)) return null;
  const words = example.replace(/ > .*/, '').match(/(?:[^\s"]|"[^"]*")+/g) ?? [];
  return words.map((word) => word.replaceAll('"', ''));
}

it('--env-file loads variables from a file; the environment takes precedence', () => {
  const file = join(temporaryFolder(), 'chambers.env');
  writeFileSync(file, '# settings\nCHAIN=none\nPORT=0\nCONFIRMATIONS="7"\nDATABASE_PATH=:memory:\n');
  const env = { PATH: process.env['PATH'], CONFIRMATIONS: '5' };
  const doctor = (...words: string[]) => spawnSync(process.execPath, ['--', CLI, ...words], { env, encoding: 'utf8' });
  const { status, stdout } = doctor('doctor', '--json', `--env-file=${file}`);
  const details = JSON.parse(stdout).findings.map(({ detail }: { readonly detail: string }) => detail);
  expect(status).toBe(0);
  expect(details).toEqual(expect.arrayContaining([':memory:', '5', 'none: chambers stay in ALLOCATE_REVEAL']));
  expect(doctor('--env-file', `${file}.missing`, 'doctor')).toMatchObject({
    status: 2,
    stderr: `usage: --env-file: cannot read ${file}.missing: ENOENT\n`,
  });
});
