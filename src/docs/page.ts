// GET /docs: the API description as one HTML page.
import { type Child, type Element, h } from '../html/element.ts';
import { breakable, inline, markdown } from '../html/markdown.ts';
import { documentPage, type NavigationGroup } from './document-page.ts';
import { ERRORS, sentence } from './errors.ts';
import type { EventDocument } from './events.ts';
import type { Schemas } from './json-schema.ts';
import type { OpenApiDocument } from './openapi.ts';
import type { OperationObject, ResponseObject } from './operation.ts';
import { example, headRow, schemaTable, table } from './page-schema.ts';

export function referencePage(document: OpenApiDocument, events: EventDocument): string {
  const groups = document.tags.map((tag) => ({ ...tag, operations: operationsOf(document, tag.name) }));
  const { schemas } = document.components;
  const { title, version, description } = document.info;
  return documentPage({
    title: `${title}: API reference`,
    home: 'API reference',
    navigation: navigation(groups, events),
    main: [
      h('header', {}, h('h1', {}, title), documentLinks(version)),
      h('div', { class: 'introduction' }, markdown(description)),
      groups.map(({ name, description: about, operations }) => [
        h('h2', { id: name }, name),
        h('p', {}, inline(about)),
        operations.map((operation) => operationSection(operation, schemas)),
      ]),
      errorSection(),
      eventSection(events),
    ],
  });
}

type Operation = ReturnType<typeof operationsOf>[number];

interface Group {
  readonly name: string;
  readonly operations: readonly Operation[];
}

function operationsOf({ paths }: OpenApiDocument, tag: string) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags.some((name) => name === tag))
      .map(([method, operation]) => ({ method, path, operation })),
  );
}

function documentLinks(version: string): Element {
  const targets = {
    'openapi.json': 'OpenAPI 3.1',
    'agent-guide': 'Agent guide',
    'schemas/events.json': 'Event schemas',
    'llms.txt': 'llms.txt',
  };
  const links = Object.entries(targets).map(([href, title]) => [' · ', h('a', { href }, title)]);
  return h('p', { class: 'links' }, `Version ${version}`, links);
}

function navigation(groups: readonly Group[], events: EventDocument): readonly NavigationGroup[] {
  const named = (name: string) => ({ href: `#${name}`, content: h('span', {}, breakable(name)) });
  const introduction = [
    { href: '#phases', content: 'Phases' },
    { href: '#signed-requests', content: 'Signed requests' },
    { href: '#limits', content: 'Limits' },
  ];
  return [
    { links: introduction },
    ...groups.map(({ name, operations }) => ({
      title: name,
      href: `#${name}`,
      links: operations.map(({ method, path, operation }) => ({
        href: `#${operation.operationId}`,
        content: [methodMark(method), ' ', h('span', {}, breakable(path))],
      })),
    })),
    { title: 'Error codes', href: '#error-codes', links: ERRORS.map(({ code }) => named(code)) },
    { title: 'Event types', href: '#event-types', links: Object.keys(events.$defs).map(named) },
  ];
}

function methodMark(method: string): Element {
  return h('span', { class: `method ${method}` }, method);
}

function operationSection({ method, path, operation }: Operation, schemas: Schemas): Element {
  const { operationId, summary, description = '', security, responses } = operation;
  const successes = Object.entries(responses).filter(([status]) => status < '300');
  const signed = security.length === 1 ? 'signed' : 'may be signed';
  const mark = security.length > 0 && [' ', h('em', {}, signed)];
  return h(
    'section',
    { class: 'operation', id: operationId },
    h('h3', {}, methodMark(method), ' ', h('code', {}, breakable(path)), mark),
    h('p', {}, h('strong', {}, `${summary}.`), ' ', inline(description)),
    parameterTable(operation, schemas),
    requestPart(operation, schemas),
    successes.map(([status, response]) => responsePart(status, response, schemas)),
    errorList(operation),
    samples(operation),
  );
}

function parameterTable({ parameters }: OperationObject, schemas: Schemas): Child {
  const rows = parameters.map(({ name, in: note, schema, description, required: isRequired }) => {
    return { name, note, schema: { ...schema, description }, isRequired };
  });
  return rows.length > 0 && table('parameter', rows, schemas);
}

function requestPart({ requestBody }: OperationObject, schemas: Schemas): Child {
  if (requestBody === undefined) return [];
  const { schema, example: value } = requestBody.content['application/json'];
  return [
    h('h4', {}, 'Body', !requestBody.required && [' ', h('i', {}, 'optional')]),
    schemaTable(schema, schemas),
    JSON.stringify(value) !== '{}' && example(value),
  ];
}

function responsePart(status: string, { description, content = {} }: ResponseObject, schemas: Schemas): Child {
  const media = Object.entries(content).map(([type, { schema, example: value, 'x-text': text = value }]) =>
    type === 'application/json'
      ? [example(value), details('Members', schemaTable(schema, schemas))]
      : [h('p', {}, h('code', {}, type)), example(text)],
  );
  return [h('h4', {}, 'Response ', statusMark(status)), h('p', {}, inline(description)), media];
}

function statusMark(status: string): Element {
  return h('span', { class: 'status' }, status);
}

function details(summary: string, ...content: readonly Child[]): Element {
  return h('details', {}, h('summary', {}, summary), ...content);
}

function errorList({ responses }: OperationObject): Child {
  const rows = Object.entries(responses).filter(([status]) => status >= '400' && status !== 'default');
  const errors = rows.map(([status, { description }]) => {
    const linkTo = (code: string) => h('a', { href: `#${code}` }, h('code', {}, breakable(code)));
    const codes = description.split(' or ').map((code) => [' ', linkTo(code)]);
    return [h('span', {}, statusMark(status), codes), ' '];
  });
  return [h('h4', {}, 'Errors'), h('p', { class: 'errors-of' }, errors)];
}

function samples({ 'x-codeSamples': each }: OperationObject): Element {
  const parts = each.map(({ label, source }) => [h('h5', {}, label), example(source)]);
  const element = details(each.map(({ label }) => label).join(' · '), parts);
  return { ...element, attributes: { class: 'samples' } };
}

function errorSection(): Child {
  const rows = ERRORS.map(({ status, code, when, remedy, example: value }) => {
    const advice = h('em', {}, inline(sentence(remedy)));
    return h(
      'tr',
      { id: code },
      h('td', {}, statusMark(String(status))),
      h('td', {}, h('code', {}, breakable(code))),
      h('td', {}, inline(sentence(when)), ' ', advice, details('Example', example(value))),
    );
  });
  const head = headRow('status', 'error', 'when, and what to do');
  const table = h('table', { class: 'errors' }, head, h('tbody', {}, ...rows));
  return [h('h2', { id: 'error-codes' }, 'Error codes'), table];
}

function eventSection({ description, $defs }: EventDocument): Child {
  const sections = Object.entries($defs).map(([type, { examples, ...schema }]) => {
    const { payload = {} } = schema.properties ?? {};
    return h(
      'section',
      { class: 'operation', id: type },
      h('h3', {}, h('code', {}, breakable(type))),
      schemaTable(payload, {}),
      details('Example', examples.map(example)),
    );
  });
  return [h('h2', { id: 'event-types' }, 'Event types'), h('p', {}, inline(description)), sections];
}
