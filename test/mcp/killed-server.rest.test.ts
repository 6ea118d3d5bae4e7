import { it } from 'vitest';
import { sharedLiveService } from '../client/live-service.ts';
import { CALL_MILLIS, expectOneComment } from './killed-server.ts';

const KILLS = Number(process.env['SEAT_KILLS'] ?? 4);

const live = sharedLiveService();

it(`calls that are repeated after their server was killed, at ${KILLS} different times, create one comment each`, () =>
  expectOneComment(
    live,
    Array.from({ length: KILLS }, (_, n) => (n * CALL_MILLIS) / KILLS),
  ));
