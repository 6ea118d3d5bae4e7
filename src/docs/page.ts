// GET /docs: the API description as one HTML page, which runs nothing and loads nothing.
import { ERRORS, sentence } from './errors.ts';
import type { EventDocument } from './events.ts';
import { breakable, type Html, html, inline, markdown } from './html.ts';
import type { Schemas } from './json-schema.ts';
import type { OpenApiDocument } from './openapi.ts';
import type { OperationObject, ResponseObject } from './operation.ts';
import { example, schemaTable, table } from './page-schema.ts';
import { PAGE_STYLE } from './page-style.ts';

export function referencePage(document: OpenApiDocument, events: EventDocument): string {
  const groups = document.tags.map((tag) => ({ ...tag, operations: operationsOf(document, tag.name) }));
  const { schemas } = document.components;
  const { title, version, description } = document.info;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}: API reference</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<nav>${navigation(groups, events)}</nav>
<main>
<header>
  <h1>${title}</h1>
  <p class="links">Version ${version} · <a href="openapi.json">OpenAPI 3.1</a> · <a href="agent-guide">Agent guide</a> · <a href="schemas/events.json">Event schemas</a> · <a href="llms.txt">llms.txt</a></p>
</header>
<div class="introduction">${markdown(description)}</div>
${groups.map(
  ({ name, description: about, operations }) => html`<h2 id="${name}">${name}</h2><p>${inline(about)}</p>
${operations.map((operation) => operationSection(operation, schemas))}`,
)}
${errorSection()}
${eventSection(events)}
</main>
</body>
</html>
`.text;
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

function navigation(groups: readonly Group[], events: EventDocument): Html {
  return html`<a href="#"><strong>API reference</strong></a>
<ul><li><a href="#phases">Phases</a></li><li><a href="#signed-requests">Signed requests</a></li><li><a href="#limits">Limits</a></li></ul>
${groups.map(
  ({ name, operations }) =>
    html`<h6><a href="#${name}">${name}</a></h6><ul>${operations.map(
      ({ method, path, operation }) =>
        html`<li><a href="#${operation.operationId}"><span class="method ${method}">${method}</span> <span>${breakable(path)}</span></a></li>`,
    )}</ul>`,
)}
<h6><a href="#error-codes">Error codes</a></h6>
<ul>${ERRORS.map(({ code }) => html`<li><a href="#${code}"><span>${breakable(code)}</span></a></li>`)}</ul>
<h6><a href="#event-types">Event types</a></h6>
<ul>${Object.keys(events.$defs).map((type) => html`<li><a href="#${type}"><span>${breakable(type)}</span></a></li>`)}</ul>`;
}

function operationSection({ method, path, operation }: Operation, schemas: Schemas): Html {
  const { operationId, summary, description = '', security, responses } = operation;
  const successes = Object.entries(responses).filter(([status]) => status < '300');
  const signed = security.length === 0 ? '' : security.length === 1 ? 'signed' : 'may be signed';
  return html`<section class="operation" id="${operationId}">
    <h3><span class="method ${method}">${method}</span> <code>${breakable(path)}</code>${signed && html` <em>${signed}</em>`}</h3>
    <p><strong>${summary}.</strong> ${inline(description)}</p>
    ${parameterTable(operation, schemas)}
    ${requestPart(operation, schemas)}
    ${successes.map(([status, response]) => responsePart(status, response, schemas))}
    ${errorList(operation)}
    ${samples(operation)}
  </section>`;
}

function parameterTable({ parameters }: OperationObject, schemas: Schemas): Html | string {
  const rows = parameters.map(({ name, in: note, schema, description, required }) => ({
    name,
    note,
    schema: { ...schema, description },
    isRequired: required,
  }));
  return rows.length === 0 ? '' : table('parameter', rows, schemas);
}

function requestPart({ requestBody }: OperationObject, schemas: Schemas): Html | string {
  if (requestBody === undefined) return '';
  const { schema, example: value } = requestBody.content['application/json'];
  return html`<h4>Body${requestBody.required ? '' : html` <i>optional</i>`}</h4>
    ${schemaTable(schema, schemas)}${JSON.stringify(value) === '{}' ? '' : example(value)}`;
}

function responsePart(status: string, { description, content = {} }: ResponseObject, schemas: Schemas): Html {
  const media = Object.entries(content);
  return html`<h4>Response <span class="status">${status}</span></h4><p>${inline(description)}</p>
    ${media.map(([type, { schema, example: value, 'x-text': text = value }]) =>
      type === 'application/json'
        ? html`${example(value)}<details><summary>Members</summary>${schemaTable(schema, schemas)}</details>`
        : html`<p><code>${type}</code></p>${example(text)}`,
    )}`;
}

function errorList({ responses }: OperationObject): Html {
  const rows = Object.entries(responses).filter(([status]) => status >= '400' && status !== 'default');
  return html`<h4>Errors</h4><p class="errors-of">${rows.map(
    ([status, { description }]) =>
      html`<span><span class="status">${status}</span> ${description.split(' or ').map((code) => html`<a href="#${code}"><code>${breakable(code)}</code></a> `)}</span> `,
  )}</p>`;
}

function samples({ 'x-codeSamples': each }: OperationObject): Html {
  const parts = each.map(({ label, source }) => html`<h5>${label}</h5>${example(source)}`);
  return html`<details class="samples"><summary>${each.map(({ label }) => label).join(' · ')}</summary>${parts}</details>`;
}

function errorSection(): Html {
  return html`<h2 id="error-codes">Error codes</h2>
<table class="errors"><thead><tr><th>status</th><th>error</th><th>when, and what to do</th></tr></thead><tbody>${ERRORS.map(
    ({ status, code, when, remedy, example: value }) => html`<tr id="${code}">
      <td><span class="status">${status}</span></td>
      <td><code>${breakable(code)}</code></td>
      <td>${inline(sentence(when))} <em>${inline(sentence(remedy))}</em><details><summary>Example</summary>${example(value)}</details></td></tr>`,
  )}</tbody></table>`;
}

function eventSection({ description, $defs }: EventDocument): Html {
  return html`<h2 id="event-types">Event types</h2><p>${inline(description)}</p>
${Object.entries($defs).map(([type, { examples, ...schema }]) => {
  const { payload = {} } = schema.properties ?? {};
  return html`<section class="operation" id="${type}"><h3><code>${breakable(type)}</code></h3>
${schemaTable(payload, {})}
<details><summary>A whole line</summary>${examples.map((value) => example(value))}</details></section>`;
})}`;
}
