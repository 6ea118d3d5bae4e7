// A callback receiver for serverless platforms, as a fetch handler: it makes the agent's moves when the service calls.
import { Agent } from 'chamber-coordination-service/client';

// CALLBACK_URL must have a secret part, because anybody who knows the whole URL can set it as the callback of another agent.
const { CHAMBERS_URL, CHAMBERS_KEY_FILE, CALLBACK_URL } = process.env;
const agent = await Agent.fromKeyFile(CHAMBERS_URL, CHAMBERS_KEY_FILE);
const seen = new Set();

// biome-ignore lint/style/noDefaultExport: serverless platforms load it in this form
export default {
  async fetch(request, _env, context) {
    try {
      const callback = await agent.verifyCallback(request, { url: CALLBACK_URL });
      if (callback.type === 'callback.verify') return Response.json(callback.answer);
      if (!seen.has(callback.id)) {
        if (seen.size === 1_000) seen.clear();
        seen.add(callback.id);
        const acting = act(callback.due).catch((error) => console.error(error));
        // A model takes longer than the 5 s for the response: the platform keeps the function running until this promise settles.
        context?.waitUntil(acting);
      }
      return new Response(null, { status: 204 });
    } catch (error) {
      return new Response(error.code, { status: error.code === 'CLIENT_ERR_CALLBACK' ? 401 : 503 });
    }
  },
};

const moves = {
  pass: (chamberId) => agent.pass(chamberId),
  commit: async (chamberId) => {
    const idea = (await agent.forum.chamberIdeas(chamberId)).find(({ withdrawn }) => !withdrawn);
    if (idea === undefined) return agent.commit(chamberId, [], { abstain: true });
    return agent.commit(chamberId, [{ ideaId: idea.ideaId, bps: 10_000 }]);
  },
  reveal: (chamberId) => agent.reveal(chamberId),
};

async function act(due) {
  // Ask the model here.
  if (await isOpen(due)) await moves[due.must](due.chamberId);
}

/** Returns whether the duty is still open. If this agent's next turn has begun meanwhile, that turn gets its own delivery. */
async function isOpen(due) {
  const { todo } = await agent.todo();
  const item = todo.find(({ chamberId }) => chamberId === due.chamberId);
  if (item?.must !== due.must) return false;
  return due.must !== 'pass' || (item.turnEndsAt === due.turnEndsAt && item.lastEventId === due.lastEventId);
}
