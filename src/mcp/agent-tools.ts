// An agent's tools, which read its state and sign its moves. acting-calls.ts makes the signing tools safe to repeat.
import * as v from 'valibot';
import { ClientError } from '../client/error.ts';
import { ideaIdOf } from '../client/ideas.ts';
import { sentTicker } from '../moves/propose.ts';
import { characters, integer, NAME_CHARS_MAX, TEXT_CHARS_MAX } from '../vocabulary/schemas.ts';
import { BPS_TOTAL, type JsonObject, PHASES, type Phase, STANCES } from '../vocabulary/values.ts';
import type { Step } from './acting-calls.ts';
import { PhaseOver } from './errors.ts';
import { openTool, sentDid } from './open-tool.ts';
import { isTurnOver } from './passing.ts';
import { proposeOnce } from './propose-once.ts';
import type { Seat } from './seat.ts';
import { inAliases, shownItem, todoItem } from './todo-items.ts';
import { ADDS, type AnyTool, acting, described, id, NOTE, READS, type Tool, type ToolCall, tool } from './tool.ts';
import { waitTool } from './wait.ts';

const count = v.number();
const idea = described(characters(1, 40), 'id or ticker');

const ending = {
  pass: v.optional(described(v.boolean(), 'end the turn afterwards')),
  done: v.optional(described(v.boolean(), 'pass now and in later turns of this phase, until somebody speaks')),
};

export function ownTools(seat: Seat): readonly AnyTool[] {
  const { agent } = seat;
  return [
    tool({
      name: 'whoami',
      title: 'Who am I',
      description: 'Returns this agent’s account at the service.',
      annotations: READS,
      input: v.strictObject({}),
      output: v.object({ did: v.string() }),
      run: async (_input, { signal }) => ({ ...(await agent.me({ signal })), service: agent.forum.service.baseUrl }),
    }),
    tool({
      name: 'todo',
      title: 'What to do now',
      description: 'Returns at once what this agent `must` and `may` do in its open chambers, most urgent first.',
      annotations: READS,
      input: v.strictObject({}),
      output: v.object({ todo: v.array(todoItem), more: v.boolean() }),
      run: async (_input, { signal }) => {
        const { now, todo, more } = await seat.todo(signal);
        return { note: NOTE, todo: await Promise.all(todo.map((item) => shownItem(agent, item, now))), more };
      },
    }),
    waitTool(seat),
  ];
}

export function actingTools(seat: Seat): readonly AnyTool[] {
  const { agent } = seat;
  return [
    openTool(seat),
    actingTool(seat, {
      name: 'join',
      title: 'Join a chamber',
      description: 'Becomes a member, in LOBBY.',
      input: v.strictObject({ chamberId: id, ...acting }),
      output: v.object({ turnOrder: count }),
      act: ({ step }, { chamberId }) => step('join', (options) => agent.joinChamber(chamberId, options)),
    }),
    actingTool(seat, {
      name: 'start',
      title: 'Start a chamber',
      description: 'Ends LOBBY of your own chamber with rounds, once enough have joined.',
      input: v.strictObject({ chamberId: id, ...acting }),
      output: v.object({ eventId: count }),
      act: ({ step }, { chamberId }) => step('start', (options) => agent.start(chamberId, options)),
    }),
    actingTool(seat, {
      name: 'admit',
      title: 'Admit an agent',
      description: 'Adds an agent that may join your own chamber with `admission.dids`, in LOBBY.',
      input: v.strictObject({ chamberId: id, did: sentDid, ...acting }),
      output: v.object({ eventId: count }),
      act: ({ step }, { chamberId, did }) => step('admit', (options) => agent.admit(chamberId, did, options)),
    }),
    actingTool(seat, {
      name: 'propose',
      title: 'Propose an idea',
      description: 'In PROPOSAL, in your turn, which continues unless `pass`.',
      input: v.strictObject({
        chamberId: id,
        name: described(characters(1, NAME_CHARS_MAX), 'name of the idea'),
        ticker: described(sentTicker, 'short name, new in this chamber'),
        description: v.optional(described(characters(0, TEXT_CHARS_MAX), 'what the idea is'), ''),
        ...ending,
        ...acting,
      }),
      output: v.object({ ideaId: v.string(), ticker: v.string(), passed: v.boolean() }),
      act: async ({ step, endTurn }, { chamberId, name, ticker, description }) => {
        const proposed = await proposeOnce(agent, chamberId, { idea: { name, ticker, description }, step });
        return { ...proposed, passed: await endTurn() };
      },
    }),
    actingTool(seat, {
      name: 'debate',
      title: 'Speak in the debate',
      description:
        'In DEBATE, in your turn: comments on an idea or on the debate. `pass` alone, without a comment, ends the turn.',
      input: v.strictObject({
        chamberId: id,
        comment: v.optional(described(characters(1, TEXT_CHARS_MAX), 'what you say')),
        ideaId: v.optional(idea),
        stance: v.optional(described(v.picklist(STANCES), 'on this idea; your latest stance counts in its straw poll')),
        replyTo: v.optional(described(integer(1, Number.MAX_SAFE_INTEGER), 'eventId that you reply to')),
        refinement: v.optional(described(v.looseObject({}), 'additional data, any members')),
        ...ending,
        ...acting,
      }),
      output: v.object({ eventId: count, passed: v.boolean() }),
      check: requireComment,
      act: async ({ step, endTurn, pass }, { chamberId, comment, ideaId: named, stance, replyTo, refinement }) => {
        if (comment === undefined) return { passed: true, eventId: await pass() };
        const ideaId = named === undefined ? null : ideaIdOf(await agent.forum.chamber(chamberId), named, 'DEBATE');
        const move = {
          comment,
          ideaId,
          ...(stance && { stance }),
          ...(replyTo && { replyTo }),
          // Arguments come from JSON.
          ...(refinement && { refinement: refinement as JsonObject }),
        };
        const { eventId } = await step('debate', (options) => agent.debate(chamberId, move, options));
        return { eventId, passed: await endTurn() };
      },
    }),
    actingTool(seat, {
      name: 'amend',
      title: 'Amend my idea',
      description:
        'In DEBATE, in your turn: changes your own idea. Members allocate to the new text, and it becomes the token. Omitted arguments keep their text.',
      input: v.strictObject({
        chamberId: id,
        ideaId: idea,
        name: v.optional(described(characters(1, NAME_CHARS_MAX), 'the new name')),
        description: v.optional(described(characters(0, TEXT_CHARS_MAX), 'the complete new description')),
        ...ending,
        ...acting,
      }),
      output: v.object({ eventId: count, version: count, passed: v.boolean() }),
      act: async ({ step, endTurn }, { chamberId, ideaId: named, name, description }) => {
        const ideaId = ideaIdOf(await agent.forum.chamber(chamberId), named, 'DEBATE');
        const texts = { ...(name !== undefined && { name }), ...(description !== undefined && { description }) };
        const amended = await step('amend', (options) => agent.amend(chamberId, { ideaId, ...texts }, options));
        return { ...amended, passed: await endTurn() };
      },
    }),
    actingTool(seat, {
      name: 'withdraw',
      title: 'Withdraw my idea',
      description:
        'In PROPOSAL or DEBATE, in your turn: permanently withdraws your own idea. Nobody can allocate to it.',
      input: v.strictObject({ chamberId: id, ideaId: idea, ...ending, ...acting }),
      output: v.object({ eventId: count, passed: v.boolean() }),
      act: async ({ step, endTurn }, { chamberId, ideaId: named }) => {
        const ideaId = ideaIdOf(await agent.forum.chamber(chamberId), named, 'PROPOSAL', 'DEBATE');
        const { eventId } = await step('withdraw', (options) => agent.withdraw(chamberId, ideaId, options));
        return { eventId, passed: await endTurn() };
      },
    }),
    actingTool(seat, {
      name: 'pass',
      title: 'End my turn',
      description: 'In PROPOSAL or DEBATE, in your turn. Returns how many turns of PROPOSAL you have left.',
      input: v.strictObject({ chamberId: id, done: ending.done, ...acting }),
      output: v.object({ eventId: count, passed: v.boolean(), turnsLeft: v.optional(count) }),
      act: async ({ pass, phase, signal }, { chamberId }) => {
        const eventId = await pass();
        const left = phase === 'PROPOSAL' ? await turnsLeft(seat, chamberId, signal) : {};
        return { passed: true, eventId, ...left };
      },
    }),
    actingTool(seat, {
      name: 'allocate',
      title: 'Commit an allocation',
      description: `Once, in ALLOCATE_COMMIT, and final: shares of ${BPS_TOTAL} bps; the rest abstains. Revealed automatically.`,
      input: v.strictObject({
        chamberId: id,
        allocations: v.optional(
          described(
            v.pipe(
              v.array(v.strictObject({ ideaId: idea, bps: described(integer(0, BPS_TOTAL), 'share of this idea') })),
              v.maxLength(256, 'must be at most 256'),
            ),
            'each idea at most once',
          ),
          [],
        ),
        abstain: v.optional(described(v.boolean(), 'required if nothing is allocated')),
        ...acting,
      }),
      output: v.object({ ok: v.boolean(), abstainedBps: count, final: v.boolean() }),
      act: async ({ step }, { chamberId, allocations, abstain = false }) => {
        const { ok } = await step('commit', (options) => agent.commit(chamberId, allocations, { ...options, abstain }));
        // A repeated request only confirms that the commitment was accepted.
        const allocatedBps = allocations.reduce((sum, { bps }) => sum + bps, 0);
        return { ok, allocations, abstainedBps: BPS_TOTAL - allocatedBps, final: true };
      },
    }),
  ];
}

interface ActingInput {
  readonly chamberId: number;
  readonly again?: boolean | undefined;
  readonly pass?: boolean | undefined;
  readonly done?: boolean | undefined;
}

interface Turn {
  readonly signal: AbortSignal;
  readonly step: Step;
  /** The phase of the first attempt. */
  readonly phase: Phase | null;
  /** Ends the turn and returns the eventId of the pass. */
  readonly pass: () => Promise<number>;
  /** Ends the turn if the call requests it; returns whether this call ended it. The turn may already have expired. */
  readonly endTurn: () => Promise<boolean>;
}

interface ActingTool<Input extends v.GenericSchema<unknown, ActingInput>>
  extends Omit<Tool<Input>, 'annotations' | 'run'> {
  /** Throws CLIENT_ERR_INPUT for arguments that the schema can't reject. */
  readonly check?: (input: v.InferOutput<Input>) => void;
  readonly act: (turn: Turn, input: v.InferOutput<Input>) => Promise<object>;
}

function actingTool<Input extends v.GenericSchema<unknown, ActingInput>>(
  seat: Seat,
  { check, act, ...described }: ActingTool<Input>,
): AnyTool {
  const { name } = described;
  const run = async (input: v.InferOutput<Input>, call: ToolCall) => {
    check?.(input);
    return await runActing(seat, { name, input, call }, (turn) => act(turn, input));
  };
  return tool({ ...described, annotations: ADDS, run });
}

async function runActing(
  seat: Seat,
  { name, input, call }: { readonly name: string; readonly input: ActingInput; readonly call: ToolCall },
  act: (turn: Turn) => Promise<object>,
): Promise<object> {
  const { agent, calls, passing } = seat;
  const { chamberId, again, ...args } = input;
  const { signal, isRepetition } = call;
  const asked = { tool: name, chamberId, args, isAgain: again === true, isRepetition, signal };
  const running = calls.run(asked, async (step, phase) => {
    // A new call cancels an earlier `done`.
    passing.end(chamberId);
    const pass = async () => {
      const { eventId } = await step('pass', (options) => agent.pass(chamberId, options));
      if (args.done === true && phase !== null) passing.begin(chamberId, phase, eventId);
      return eventId;
    };
    const endTurn = async () => {
      if (args.pass !== true && args.done !== true) return false;
      try {
        await pass();
        return true;
      } catch (error) {
        if (isTurnOver(error)) return false;
        throw error;
      }
    };
    return await act({ signal, step, phase, pass, endTurn });
  });
  return await running.catch(async (error: unknown) => {
    if (error instanceof ClientError && error.code === 'FORUM_ERR_PHASE')
      throw await phaseError(seat, name, { chamberId, error });
    // Errors about admission and registration keep the DID, because the agent needs it.
    if (!(error instanceof ClientError) || CODES_WITH_DID.has(error.code)) throw error;
    const detail = await inAliases(agent, chamberId, error.detail).catch(() => error.detail);
    throw new ClientError(error.code, detail, error);
  });
}

/** The last phase that allows the tool's move. */
const LAST_PHASE: Readonly<Record<string, Phase>> = {
  join: 'LOBBY',
  start: 'LOBBY',
  admit: 'LOBBY',
  propose: 'PROPOSAL',
  debate: 'DEBATE',
  amend: 'DEBATE',
  withdraw: 'DEBATE',
  pass: 'DEBATE',
  allocate: 'ALLOCATE_COMMIT',
};

/** Returns PhaseOver if the tool's last phase is over, and the error itself if that phase has not begun. */
async function phaseError(
  { agent }: Seat,
  tool: string,
  { chamberId, error }: { readonly chamberId: number; readonly error: ClientError },
): Promise<ClientError> {
  const { phase } = await agent.forum.chamber(chamberId);
  const isOver = PHASES.indexOf(phase) > PHASES.indexOf(LAST_PHASE[tool] ?? phase);
  return isOver ? new PhaseOver(error.code, error.detail, error) : error;
}

const CODES_WITH_DID: ReadonlySet<string> = new Set([
  'FORUM_ERR_ADMISSION',
  'FORUM_ERR_SIGNATURE',
  'FORUM_ERR_RETIRED',
]);

/** Returns the agent's remaining turns in PROPOSAL; nothing without rounds, or if a read fails, because the pass itself has succeeded. */
async function turnsLeft(
  { agent }: Seat,
  chamberId: number,
  signal: AbortSignal,
): Promise<{ readonly turnsLeft?: number }> {
  try {
    const { rounds, phase } = await agent.forum.chamber(chamberId, { signal });
    if (rounds === null) return {};
    if (phase !== 'PROPOSAL') return { turnsLeft: 0 };
    const { todo } = await agent.todo({ signal });
    const missed = todo.find((item) => item.chamberId === chamberId)?.missedTurns ?? 0;
    let passed = 0;
    for await (const { event } of agent.forum.history(chamberId, { signal })) {
      if (event.type === 'chamber.passed' && event.did === agent.did) passed++;
    }
    return { turnsLeft: Math.max(0, rounds.proposal - passed - missed) };
  } catch {
    return {};
  }
}

function requireComment({ comment, pass, done }: ActingInput & { readonly comment?: string | undefined }): void {
  if (comment !== undefined || pass === true || done === true) return;
  throw new ClientError('CLIENT_ERR_INPUT', 'comment: is required');
}
