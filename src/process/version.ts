import { createRequire } from 'node:module';

/** The package's version. */
export const VERSION: string = createRequire(import.meta.url)('#package').version;
