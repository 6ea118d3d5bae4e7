// The honest agents, a separate process: each sends a signed move, waits for the response, and sends the next.
import { setTimeout as sleep } from 'node:timers/promises';
import { prepare, send } from '../../kit/wire.ts';
import { chamberOf, HONEST_AGENTS, honestAgent, PUBLIC_URL } from './scene.ts';

export interface Answered {
  readonly signature: string;
  readonly eventId: number;
}

export interface HonestReport {
  readonly answered: readonly Answered[];
  /** The time of each response, in the order of the responses. */
  readonly millis: readonly number[];
  /** When each response arrived, in milliseconds of the wall clock. */
  readonly answeredAt: readonly number[];
  readonly errors: readonly string[];
}

const PAUSE_MS = 40;
const COMMENT = 'The reserve should cover two quarters of costs before anything is spent on growth';

const [, , url = ''] = process.argv;
const answered: Answered[] = [];
const millis: number[] = [];
const answeredAt: number[] = [];
const errors: string[] = [];
let isOver = false;

process.once('message', () => {
  isOver = true;
});

await Promise.all(Array.from({ length: HONEST_AGENTS }, (_, index) => debate(index)));
const report: HonestReport = { answered, millis, answeredAt, errors };
process.send?.(report, () => process.disconnect());

async function debate(index: number): Promise<void> {
  const by = honestAgent(index);
  for (let move = 1; !isOver; move++) {
    const body = { comment: `${COMMENT} (${move})` };
    const request = prepare('POST', `/chambers/${chamberOf(index)}/debate`, { by, body, publicUrl: PUBLIC_URL });
    const startedAt = performance.now();
    try {
      const { status, body: answer } = await send(url, request);
      millis.push(performance.now() - startedAt);
      answeredAt.push(Date.now());
      const { signature = '' } = request.headers;
      if (status === 200) answered.push({ signature, eventId: answer.eventId });
      else errors.push(`${status} ${JSON.stringify(answer)}`);
    } catch (error) {
      errors.push(String(error));
    }
    await sleep(PAUSE_MS);
  }
}
