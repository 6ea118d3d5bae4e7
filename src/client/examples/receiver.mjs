// A receiver of callbacks as a fetch handler, for serverless platforms: it makes the agent's moves when the service calls.
import { Agent } from 'chamber-coordination-service/client';

// CALLBACK_URL has a secret part that only its owner knows: that alone decides who can set it.
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
  commit: (chamberId) => agent.commit(chamberId, [{ ideaId: 'idea-1', bps: 10_000 }]),
  reveal: (chamberId) => agent.reveal(chamberId),
};

async function act(due) {
  // Ask the model here.
  if (await isOpen(due)) await moves[due.must](due.chamberId);
}

/** The turn may have ended meanwhile, and the next one of this agent begun: that one has a delivery of its own. */
async function isOpen(due) {
  const { todo } = await agent.todo();
  const item = todo.find(({ chamberId }) => chamberId === due.chamberId);
  if (item?.must !== due.must) return false;
  return due.must !== 'pass' || (item.turnEndsAt === due.turnEndsAt && item.lastEventId === due.lastEventId);
}
