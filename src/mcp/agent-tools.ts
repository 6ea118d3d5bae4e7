// What an agent does through its seat: the tools that sign.
import * as v from 'valibot';
import { ClientError } from '../client/error.ts';
import { sentTicker } from '../moves/propose.ts';
import { characters, integer, NAME_CHARS_MAX, TEXT_CHARS_MAX } from '../vocabulary/schemas.ts';
import { BPS_TOTAL, DEADLINES, type DeadlineName } from '../vocabulary/values.ts';
import type { Seat } from './seat.ts';
import { ADDS, type AnyTool, id, NOTE, READS, tool } from './tool.ts';
import { todoItems, waitTool } from './wait.ts';

const PHASE_SECONDS = { min: 1, max: 31_536_000, fallback: 600 } as const;
/** As the command line names them, in the order of DEADLINES. */
const PHASE_NAMES = ['lobby', 'proposal', 'debate', 'commit', 'reveal'] as const;
const SECOND_MILLIS = 1_000;

const count = v.number();
const ideaId = characters(1, 40);

export function agentTools(seat: Seat): readonly AnyTool[] {
  const { agent } = seat;
  return [
    tool({
      name: 'whoami',
      title: 'Who am I',
      description: 'This agent as the service knows it.',
      annotations: READS,
      input: v.strictObject({}),
      output: v.object({ did: v.string() }),
      run: async (_input, { signal }) => ({ ...(await agent.me({ signal })), service: agent.forum.service.baseUrl }),
    }),
    tool({
      name: 'todo',
      title: 'What to do now',
      description: 'What this agent `must` and `may` do in its open chambers, most urgent first.',
      annotations: READS,
      input: v.strictObject({}),
      output: v.object({ todo: todoItems, more: v.boolean() }),
      run: async (_input, { signal }) => ({ note: NOTE, ...(await seat.todo(signal)) }),
    }),
    waitTool(seat),
    tool({
      name: 'open',
      title: 'Open a chamber',
      description:
        'Creates a chamber; join it to take part. `phaseSeconds`: how long each phase lasts at most (600). Prefer `rounds` (turns of each member, needs `turnSeconds`): phases end once nothing is left to come, LOBBY by `start`.',
      annotations: ADDS,
      input: v.strictObject({
        name: characters(1, NAME_CHARS_MAX),
        topic: v.optional(characters(0, 2_000)),
        phaseSeconds: v.optional(
          v.strictObject(v.entriesFromList(PHASE_NAMES, v.optional(integer(PHASE_SECONDS.min, PHASE_SECONDS.max)))),
          {},
        ),
        turnSeconds: v.optional(integer(1, PHASE_SECONDS.max)),
        rounds: v.optional(v.strictObject({ proposal: integer(1, 100), debate: integer(1, 100) })),
        minBackersForGraduation: v.optional(integer(1, 256)),
      }),
      output: v.object({ chamberId: count, warnings: v.optional(v.array(v.string())) }),
      run: ({ phaseSeconds, ...chamber }) => {
        const lengths = PHASE_NAMES.map((name) => phaseSeconds[name]);
        let at = agent.forum.service.clock.now();
        const deadlines = DEADLINES.map((name, phase) => {
          at += (lengths[phase] ?? PHASE_SECONDS.fallback) * SECOND_MILLIS;
          return [name, new Date(at)] as const;
        });
        return agent.createChamber({ ...chamber, ...(Object.fromEntries(deadlines) as Record<DeadlineName, Date>) });
      },
    }),
    tool({
      name: 'join',
      title: 'Join a chamber',
      description: 'Becomes a member, in LOBBY.',
      annotations: ADDS,
      input: v.strictObject({ chamberId: id }),
      output: v.object({ turnOrder: count }),
      run: ({ chamberId }) => agent.joinChamber(chamberId),
    }),
    tool({
      name: 'start',
      title: 'Start a chamber',
      description: 'Ends LOBBY of your own chamber with rounds, once enough have joined.',
      annotations: ADDS,
      input: v.strictObject({ chamberId: id }),
      output: v.object({ eventId: count }),
      run: ({ chamberId }) => agent.start(chamberId),
    }),
    tool({
      name: 'propose',
      title: 'Propose an idea',
      description: 'In PROPOSAL, in your turn; keeps the turn unless `pass`.',
      annotations: ADDS,
      input: v.strictObject({
        chamberId: id,
        name: characters(1, NAME_CHARS_MAX),
        ticker: sentTicker,
        description: v.optional(characters(0, TEXT_CHARS_MAX), ''),
        pass: v.optional(v.boolean()),
      }),
      output: v.object({ ideaId: v.string(), passed: v.boolean() }),
      run: async ({ chamberId, pass = false, ...idea }) => {
        const proposed = await agent.propose(chamberId, idea);
        if (pass) await passAfter(seat, chamberId, `${proposed.ideaId} is proposed`);
        return { ...proposed, passed: pass };
      },
    }),
    tool({
      name: 'debate',
      title: 'Speak, or end the turn',
      description:
        'In your turn: a `comment` in DEBATE, about an idea or everything. `pass` ends the turn, also alone, also in PROPOSAL.',
      annotations: ADDS,
      input: v.strictObject({
        chamberId: id,
        comment: v.optional(characters(1, TEXT_CHARS_MAX)),
        ideaId: v.optional(ideaId),
        pass: v.optional(v.boolean()),
      }),
      output: v.object({ eventId: count, passed: v.boolean() }),
      run: async ({ chamberId, comment, ideaId, pass = false }) => {
        if (comment === undefined) {
          if (!pass) throw new ClientError('CLIENT_ERR_INPUT', 'comment or pass: one of them is required');
          return { eventId: (await agent.pass(chamberId)).eventId, passed: true };
        }
        const { eventId } = await agent.debate(chamberId, { comment, ideaId: ideaId ?? null });
        if (pass) await passAfter(seat, chamberId, `the comment is event ${eventId}`);
        return { eventId, passed: pass };
      },
    }),
    tool({
      name: 'allocate',
      title: 'Commit an allocation',
      description: `Once, in ALLOCATE_COMMIT: shares of ${BPS_TOTAL} bps; the rest abstains. Revealed automatically in ALLOCATE_REVEAL.`,
      annotations: ADDS,
      input: v.strictObject({
        chamberId: id,
        allocations: v.pipe(
          v.array(v.strictObject({ ideaId, bps: integer(0, BPS_TOTAL) })),
          v.maxLength(256, 'must be at most 256'),
        ),
      }),
      output: v.object({ ok: v.boolean() }),
      run: ({ chamberId, allocations }) => agent.commit(chamberId, allocations),
    }),
  ];
}

/** The move before the pass was made, and the error says so, so that it is not repeated. */
async function passAfter({ agent }: Seat, chamberId: number, done: string): Promise<void> {
  try {
    await agent.pass(chamberId);
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    throw new ClientError(error.code, `${done} and must not be repeated; the pass failed: ${error.detail}`);
  }
}
