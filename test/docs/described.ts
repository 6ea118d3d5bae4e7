// Checks responses against an OpenAPI document with ajv, independently of src.
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

interface Media {
  readonly schema: object;
}

interface ResponseObject {
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, Media>>;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
}

interface OperationObject {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly responses: { readonly Rejected: ResponseObject };
  };
}

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly response: Response;
  readonly text: string;
}

export interface Described {
  readonly document: OpenApi;
  /** Differences between the response and its description. */
  problemsOf(exchange: Exchange): readonly string[];
  /** Differences between a log line and /schemas/events.json. */
  problemsOfEvent(line: string): readonly string[];
  /** `operationId status` of every response that was checked. */
  readonly seen: ReadonlySet<string>;
  /** The event types and error codes that were checked. */
  readonly seenNames: ReadonlySet<string>;
  readonly eventTypes: readonly string[];
}

export async function describedBy(url: string): Promise<Described> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
  const events = (await (await fetch(`${url}/schemas/events.json`)).json()) as { readonly $defs: object };
  const ajv = newAjv();
  ajv.addSchema({ $id: 'openapi', components: document.components });
  const validateEvent = ajv.compile({ ...events, $id: 'events' });
  const seen = new Set<string>();
  const seenNames = new Set<string>();
  return { document, problemsOf, problemsOfEvent, seen, seenNames, eventTypes: Object.keys(events.$defs) };

  function problemsOf({ method, path, response, text }: Exchange): readonly string[] {
    const operation = operationAt(document, method, path);
    const described = operation?.responses[response.status] ?? document.components.responses.Rejected;
    seen.add(`${operation?.operationId} ${response.status}`);
    const missing = Object.keys(described?.headers ?? {}).filter(
      (name) => name !== 'Retry-After' && !response.headers.has(name),
    );
    return [...missing.map((name) => `the header ${name} is missing`), ...bodyProblems(described, response, text)];
  }

  function bodyProblems(described: ResponseObject | undefined, response: Response, text: string): readonly string[] {
    if (described?.content === undefined) return text === '' ? [] : ['no body is described'];
    const type = response.headers.get('content-type')?.split(';')[0] ?? '';
    const media = described.content[type];
    if (media === undefined) return [`the content type ${type} is not described`];
    if (type !== 'application/json') return [];
    const body = JSON.parse(text);
    if (typeof body?.error === 'string') seenNames.add(body.error);
    const schema = JSON.parse(JSON.stringify(media.schema).replaceAll('"#/', '"openapi#/'));
    return ajv.validate(schema, body) ? [] : [ajv.errorsText()];
  }

  function problemsOfEvent(line: string): readonly string[] {
    const event = JSON.parse(line);
    seenNames.add(event.type);
    return validateEvent(event) ? [] : [`${event.type}: ${ajv.errorsText(validateEvent.errors)}`];
  }
}

export function newAjv(): Ajv2020 {
  const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: true, discriminator: false });
  ajv.addVocabulary(['discriminator', 'components']);
  addFormats.default(ajv);
  return ajv;
}

function operationAt(document: OpenApi, method: string, path: string): OperationObject | undefined {
  const [pathname = ''] = path.split('?');
  const found = Object.keys(document.paths)
    .filter((template) => new RegExp(`^${patternOf(template)}$`).test(pathname))
    .sort((a, b) => a.split('{').length - b.split('{').length)[0];
  return found === undefined ? undefined : document.paths[found]?.[method.toLowerCase()];
}

/** The path of a tile has several segments, which OpenAPI can't express. */
function patternOf(template: string): string {
  return template.replace('{tile}', '.+').replace(/\{\w+\}/g, '[^/]+');
}
