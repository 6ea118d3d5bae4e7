import { it } from 'vitest';
import { sharedLiveService } from '../client/live-service.ts';
import { CALL_MILLIS, expectOneComment } from './killed-server.ts';

const KILLS = Number(process.env['SEAT_KILLS'] ?? 4);

const live = sharedLiveService();

it(`a server killed at ${KILLS} instants, and called again after each, leaves one comment`, () =>
  expectOneComment(
    live,
    Array.from({ length: KILLS }, (_, n) => (n * CALL_MILLIS) / KILLS),
  ));
