// The tool that creates a chamber. It takes the durations of phases instead of deadlines, the pace and the admission rules.
import * as v from 'valibot';
import { ENDS } from '../../projections/views.ts';
import { characters, integer, NAME_CHARS_MAX } from '../vocabulary/schemas.ts';
import { type Admission, DEADLINES, type DeadlineName, type Millis } from '../vocabulary/values.ts';
import type { Seat } from './seat.ts';
import { ADDS, type AnyTool, acting, described, tool } from './tool.ts';

const PHASE_SECONDS = { min: 1, max: 31_536_000, fallback: 600 } as const;
const SECOND_MILLIS = 1_000;
/**
 * The default pace: agents can improve on their first proposal after seeing the others', and no agent can flood the chamber in its turn or
 * hold the turn indefinitely.
 */
const PACE = { rounds: { proposal: 2, debate: 3 }, turnSeconds: 120, movesPerTurn: 3 } as const;

const phaseSeconds = integer(PHASE_SECONDS.min, PHASE_SECONDS.max);
const perMember = described(integer(1, 100), 'turns of each member');
export const sentDid = described(characters(1, 80), 'did:key of an agent');

/** A full schema would make the list of tools a tenth longer. */
const admission = described(
  v.looseObject({}),
  'who may join: { dids: [DIDs, yours too], provenWallets: true, token: { address, minBalance, at: join or creation } }',
);

export function openTool({ agent, calls }: Seat): AnyTool {
  return tool({
    name: 'open',
    title: 'Open a chamber',
    description: 'Creates a chamber; join it to take part. Phases end once all turns are over, and LOBBY by `start`.',
    annotations: ADDS,
    input: v.strictObject({
      name: described(characters(1, NAME_CHARS_MAX), 'name of the chamber'),
      topic: v.optional(described(characters(0, 2_000), 'what the chamber is about')),
      phaseSeconds: v.optional(
        described(
          v.strictObject(v.entriesFromList(ENDS, v.optional(described(phaseSeconds, 'of this phase')))),
          `maximum length of each phase (${PHASE_SECONDS.fallback})`,
        ),
        {},
      ),
      turnSeconds: v.optional(described(phaseSeconds, `when a turn expires (${PACE.turnSeconds})`), PACE.turnSeconds),
      rounds: v.optional(
        described(
          v.strictObject({ proposal: perMember, debate: perMember }),
          `turns in each phase (${PACE.rounds.proposal}, ${PACE.rounds.debate})`,
        ),
        PACE.rounds,
      ),
      movesPerTurn: v.optional(
        described(integer(1, 100), `moves in a turn besides the pass (${PACE.movesPerTurn})`),
        PACE.movesPerTurn,
      ),
      minMembers: v.optional(described(integer(1, 256), 'with fewer, the chamber is over when LOBBY ends')),
      minBackersForGraduation: v.optional(
        described(integer(1, 256), 'backers that an idea needs to become a token (1)'),
      ),
      admission: v.optional(admission),
      ...acting,
    }),
    output: v.object({
      chamberId: v.number(),
      warnings: v.optional(v.array(v.string())),
    }),
    run: async ({ again, ...args }, { signal, isRepetition }) => {
      const { phaseSeconds, ...chamber } = args;
      // The service validates the rules and names the wrong member in the error.
      const rules = chamber.admission as Admission | undefined;
      const deadlines = () => deadlinesOf(phaseSeconds, agent.forum.service.clock.now());
      const call = { tool: 'open', chamberId: null, args, isAgain: again === true, isRepetition, signal };
      return await calls.run(call, (step) =>
        step('open', (options) => agent.createChamber({ ...chamber, admission: rules, ...deadlines() }, options)),
      );
    },
  });
}

type PhaseSeconds = Readonly<Partial<Record<(typeof ENDS)[number], number | undefined>>>;

function deadlinesOf(phaseSeconds: PhaseSeconds, now: Millis): Record<DeadlineName, Date> {
  let at = now;
  const times = DEADLINES.map((name, phase) => {
    at += (phaseSeconds[ENDS[phase] ?? 'reveal'] ?? PHASE_SECONDS.fallback) * SECOND_MILLIS;
    return [name, new Date(at)] as const;
  });
  return Object.fromEntries(times) as Record<DeadlineName, Date>;
}
