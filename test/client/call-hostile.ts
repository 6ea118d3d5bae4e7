// A test program that makes one call of the client to a service and prints the result.
import { Agent, ForumClient } from '../../src/client/index.ts';

const [url = '', call = '', limits = '{}'] = process.argv.slice(2);
const forum = new ForumClient(url, { patienceMillis: 3_000, limits: JSON.parse(limits) });
const agent = Agent.fromSeed(forum, new Uint8Array(32).fill(1));

/** Ends when the consumer has read enough, because a stream of valid lines has no end. */
async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

const CALLS: Readonly<Record<string, () => Promise<unknown>>> = {
  chambers: () => forum.chambers(),
  ideas: () => forum.chamberIdeas(1),
  transcript: () => forum.transcript(1),
  history: () => drain(forum.history(1)),
  lines: () => drain(forum.lines(1)),
  allLines: () => drain(forum.allLines()),
  todos: () => drain(agent.todos()),
  pass: () => agent.pass(1),
};

try {
  await CALLS[call]?.();
  console.log('done');
} catch (error) {
  console.log((error as { readonly code?: string }).code ?? String(error));
}
process.exit();
