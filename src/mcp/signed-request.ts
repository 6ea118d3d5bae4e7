import * as v from 'valibot';
import type { SignedRequest } from '../client/call.ts';

export const signedRequest: v.GenericSchema<SignedRequest> = v.strictObject({
  method: v.picklist(['POST', 'PUT']),
  path: v.string(),
  body: v.string(),
  headers: v.record(v.string(), v.string()),
});
