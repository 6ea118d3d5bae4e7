// Ideas (specification, Endpoints, Ideas).
import type { ChamberState } from '../../projections/chamber.ts';
import { ideaViews } from '../../projections/views.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { invalid, parseId, parseInteger } from '../vocabulary/parameters.ts';
import { findChamber, LIST_LIMIT, LIST_LIMIT_DEFAULT } from './chambers.ts';
import type { ForumApp, HttpOptions } from './context.ts';
import { json, jsonText } from './response.ts';

export function ideaRoutes(app: ForumApp, options: HttpOptions): void {
  const { forum } = options;

  app.get('/ideas', async (c) => {
    const limit = parseInteger('limit', c.req.query('limit'), LIST_LIMIT) ?? LIST_LIMIT_DEFAULT;
    return json(await forum.log.listGraduatedIdeas(limit));
  });

  app.get('/ideas/:ticker', async (c) => {
    const ticker = c.req.param('ticker');
    const idea = await forum.log.findIdea(ticker, parseChamberId(c.req.query('chamberId')));
    if (idea === undefined) {
      throw new ForumError('FORUM_ERR_NOT_FOUND', `there is no idea of ticker ${JSON.stringify(ticker)}`);
    }
    return json(idea);
  });

  app.get('/chambers/:id/ideas', async (c) => {
    const { state } = await findChamber(c, options);
    return jsonText(ideasText(state));
  });
}

const ideasTexts = new WeakMap<ChamberState, Uint8Array<ArrayBuffer>>();

/** Made once for a state: it may be megabytes, which all who ask, and take their time to read, then share. */
function ideasText(state: ChamberState): Uint8Array<ArrayBuffer> {
  const known = ideasTexts.get(state);
  if (known !== undefined) return known;
  const text = Buffer.from(JSON.stringify(ideaViews(state)));
  ideasTexts.set(state, text);
  return text;
}

function parseChamberId(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const chamberId = parseId(text);
  if (chamberId === undefined) throw invalid('chamberId', 'must be a positive integer');
  return chamberId;
}
