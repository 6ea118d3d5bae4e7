// The texts for models: every tool and argument is described, every error says what to do next, and all texts are short.
import type { Tool } from '@modelcontextprotocol/client';
import { expect, it } from 'vitest';
import { ClientError, type ClientErrorCode } from '../../src/client/index.ts';
import { errorBody, REMEDIES_OF } from '../../src/mcp/errors.ts';
import { INSTRUCTIONS, INSTRUCTIONS_CHARS_MAX, READ_ONLY_INSTRUCTIONS } from '../../src/mcp/instructions.ts';
import { ERROR_CODES } from '../../src/vocabulary/errors.ts';
import { openSeat } from './seat-in-process.ts';

const DESCRIPTION_CHARS_MAX = 200;
const ARGUMENT_CHARS_MAX = 120;
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'];
const READING = ['whoami', 'todo', 'wait', 'chambers', 'read', 'verify'];
const ACTING = ['open', 'join', 'start', 'admit', 'propose', 'debate', 'amend', 'withdraw', 'pass', 'allocate'];

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly minimum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** The paths of arguments without their own description, or with a description that is not a separate clause. */
function undescribed({ properties = {}, items }: Schema, path = ''): readonly string[] {
  const below = items === undefined ? [] : undescribed(items, `${path}[]`);
  const members = Object.entries(properties).flatMap(([name, schema]) => {
    const { description = '' } = schema;
    const isGood =
      description.trim().length > 2 && description.length <= ARGUMENT_CHARS_MAX && !/[.\s]$/.test(description);
    return [...(isGood ? [] : [`${path}.${name}`]), ...undescribed(schema, `${path}.${name}`)];
  });
  return [...members, ...below];
}

function problemsOf(tool: Tool): readonly string[] {
  const { name, title = '', description = '', annotations = {}, inputSchema } = tool;
  const outputSchema = tool.outputSchema as Schema | undefined;
  const problems = undescribed(inputSchema as Schema).map((path) => `${path} is not described`);
  if (!/^[A-Z][^.]*$/.test(title)) problems.push('the title is not a title');
  if (!/^[A-Z`].*\.$/s.test(description) || description.length > DESCRIPTION_CHARS_MAX) problems.push('description');
  for (const hint of HINTS) if (!(hint in annotations)) problems.push(`${hint} is missing`);
  if (annotations.readOnlyHint !== READING.includes(name)) problems.push('readOnlyHint is wrong');
  if (outputSchema?.type !== 'object' || Object.keys(outputSchema.properties ?? {}).length === 0)
    problems.push('output');
  return problems.map((problem) => `${name}: ${problem}`);
}

it('every tool has a title, a description, all hints, described arguments and an output schema', async () => {
  const { client } = await openSeat();
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name).sort()).toEqual([...READING, ...ACTING].sort());
  expect(tools.flatMap(problemsOf)).toEqual([]);
});

it('the schema of every argument rejects unknown members and numbers below the minimum', async () => {
  const { client, call } = await openSeat();
  const { tools } = await client.listTools();
  for (const { name, inputSchema } of tools) {
    expect([name, inputSchema]).toEqual([name, expect.objectContaining({ additionalProperties: false })]);
    expect(await call(name, { unknownArgument: 1 })).toMatchObject({ error: 'CLIENT_ERR_INPUT' });
    for (const [argument, schema] of Object.entries((inputSchema as Schema).properties ?? {})) {
      if (schema.type !== 'integer') continue;
      expect([name, argument, schema]).toEqual([
        name,
        argument,
        expect.objectContaining({ minimum: expect.any(Number) }),
      ]);
      const { minimum = 0 } = schema;
      const { detail } = await call(name, { [argument]: minimum - 1 });
      expect(detail).toContain(`${argument}: `);
    }
  }
});

it('a read-only server has no tools that sign', async () => {
  const { client } = await openSeat({ isReadOnly: true });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name).sort()).toEqual([...READING].sort());
  expect(client.getInstructions()).toBe(READ_ONLY_INSTRUCTIONS);
});

it('the instructions contain the rules of a chamber', async () => {
  const { client } = await openSeat();
  expect(client.getInstructions()).toBe(INSTRUCTIONS);
  expect(INSTRUCTIONS.length).toBeLessThanOrEqual(INSTRUCTIONS_CHARS_MAX);
  for (const tool of [
    'chambers',
    'read',
    'join',
    'open',
    'start',
    'wait',
    'propose',
    'amend',
    'withdraw',
    'allocate',
  ]) {
    expect(INSTRUCTIONS).toContain(`\`${tool}\``);
  }
});

/** How a sentence with a remedy may begin. */
const ACTION =
  /^(ask|call|choose|correct|do|find|go|join|leave|nothing|pass|repeat|report|send|satisfy|slow|start|stop|take|tell|wait)\b/;

it.each([...READING, ...ACTING])('every error of %s says what to do, and when', (name) => {
  const ofTool = Object.keys(REMEDIES_OF[name] ?? {}) as ClientErrorCode[];
  const codes: readonly ClientErrorCode[] = [...ERROR_CODES, ...ofTool];
  for (const code of codes) {
    const body = errorBody(new ClientError(code, 'detail'), name);
    expect(body, code).toEqual({
      error: code,
      detail: 'detail',
      do: expect.stringMatching(ACTION),
      when: expect.any(String),
    });
    expect(body.do.length, code).toBeLessThanOrEqual(ARGUMENT_CHARS_MAX);
    expect(body.when.length, code).toBeGreaterThan(3);
  }
});

it('the remedy of an error depends on the tool', () => {
  const conflict = (tool: string) => errorBody(new ClientError('FORUM_ERR_CONFLICT', ''), tool).do;
  expect(new Set(ACTING.slice(0, 4).map(conflict)).size).toBe(4);
  expect(conflict('allocate')).not.toContain('ticker');
  expect(conflict('propose')).toContain('ticker');
});

it('the error for a wrong URL scheme asks the operator to correct it; the error for a silent service asks for a retry', () => {
  const unreachable = (code: string) =>
    errorBody(new ClientError('CLIENT_ERR_UNREACHABLE', '', { cause: Object.assign(new Error(), { code }) })).do;
  expect(unreachable('ERR_SSL_WRONG_VERSION_NUMBER')).toContain('--url');
  expect(unreachable('ECONNREFUSED')).toContain('again');
});
