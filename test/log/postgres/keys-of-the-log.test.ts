import { describe } from 'vitest';
import { temporaryPostgres } from '../../kit/postgres.ts';
import { describeKeys } from '../../service/keys-of-the-log.ts';

describe('a log in PostgreSQL', () =>
  describeKeys(async () => ({ DATABASE_URL: await temporaryPostgres(), DATABASE_PATH: '' })));
