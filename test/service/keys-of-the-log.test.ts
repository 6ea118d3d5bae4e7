import { describe } from 'vitest';
import { temporaryDatabase } from '../kit/temporary.ts';
import { describeKeys } from './keys-of-the-log.ts';

describe('a log in a file', () => describeKeys(() => ({ DATABASE_PATH: temporaryDatabase() })));
