// Serves the built files of the page from dist/page, plain or compressed. Their names contain a hash of their content, so browsers cache
// them indefinitely. Without a build there are no files, and pages work without scripts and style.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { acceptedEncoding, ENCODINGS, type Encoding } from '../vocabulary/accept.ts';
import { IMMUTABLE } from '../vocabulary/endpoint.ts';

const PACKAGE = createRequire(import.meta.url).resolve('#package');
export const ASSETS_FOLDER = join(dirname(PACKAGE), 'dist/page');

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const EXTENSIONS: Readonly<Record<Encoding, string>> = { br: '.br', gzip: '.gz' };

export class Assets {
  readonly #files = new Map<string, Buffer>();

  constructor(folder = ASSETS_FOLDER) {
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
      this.#files.set(name, readFileSync(join(folder, name)));
    }
  }

  /** Returns the path of a file by its name without hash and extension, e.g. `page` for `page-<hash>.js`; undefined without a build. */
  pathOf(name: string): string | undefined {
    const pattern = new RegExp(`^${name}-[\\w-]{8}\\.(js|css|svg)$`);
    const file = [...this.#files.keys()].find((each) => pattern.test(each));
    return file && `assets/${file}`;
  }

  /** Returns undefined for an unknown name. */
  respond(name: string, acceptEncoding: string, headers: Readonly<Record<string, string>>): Response | undefined {
    const type = TYPES[extname(name)];
    const plain = this.#files.get(name);
    if (type === undefined || plain === undefined) return undefined;
    const compressed = (each: Encoding) => this.#files.get(name + EXTENSIONS[each]);
    const available = ENCODINGS.filter((each) => compressed(each) !== undefined);
    const encoding = acceptedEncoding(acceptEncoding, available);
    const body = encoding && compressed(encoding);
    return new Response(new Uint8Array(body ?? plain), {
      headers: {
        ...headers,
        'Content-Type': type,
        'Cache-Control': IMMUTABLE,
        Vary: 'Accept-Encoding',
        ...(encoding && { 'Content-Encoding': encoding }),
      },
    });
  }
}
