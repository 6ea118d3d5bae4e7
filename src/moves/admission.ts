// The rules by which a chamber decides who takes part: as they are sent at its creation, and as a join is judged by them.
import * as v from 'valibot';
import { toSentence, unmetRules } from '../../projections/admission.ts';
import { parseDid } from '../crypto/did-key.ts';
import { ForumError } from '../vocabulary/errors.ts';
import { did, exactly } from '../vocabulary/schemas.ts';
import type { Admission } from '../vocabulary/values.ts';
import type { DecisionContext } from './move.ts';

const LISTED_AT_CREATION_MAX = 256;
/** With those that the creator adds. */
export const LISTED_MAX = 1_024;

const DID_MESSAGE = 'must be a did:key of an Ed25519 key';
export const sentDid = v.pipe(
  v.string(DID_MESSAGE),
  v.check((text) => parseDid(text) !== undefined, DID_MESSAGE),
  v.description('did:key of an Ed25519 public key'),
);

export const sentAdmission = v.pipe(
  exactly({
    dids: v.exactOptional(
      v.pipe(
        v.array(sentDid, 'must be an array of did:keys'),
        v.maxLength(LISTED_AT_CREATION_MAX, `must hold at most ${LISTED_AT_CREATION_MAX} did:keys`),
        v.checkItems((item, index, items) => items.indexOf(item) === index, 'is listed twice'),
        v.description('only these agents may join; the creator adds more in LOBBY'),
      ),
    ),
  }),
  v.description('who may join: all rules given must hold'),
);

/** In events and views. */
export const admission: v.GenericSchema<Admission> = v.strictObject({ dids: v.exactOptional(v.array(did)) });

/** Throws FORUM_ERR_ADMISSION, whose detail names each rule that failed and what would satisfy it. */
export function requireAdmission({ state, did }: DecisionContext): void {
  if (state.admission === null) return;
  const unmet = unmetRules(state, { did });
  if (unmet.length === 0) return;
  throw new ForumError('FORUM_ERR_ADMISSION', toSentence(unmet), { failedRules: unmet.map(({ rule }) => rule) });
}
