// GET /docs: the API description as one HTML page, which runs nothing and loads nothing.
import type { OpenApiDocument } from './document.ts';
import { ERRORS, sentence } from './errors.ts';
import type { EventDocument } from './event-document.ts';
import { type Html, html } from './html.ts';
import type { Schemas } from './json-schema.ts';
import { inline, markdown } from './markdown.ts';
import { type Operation, operationSection } from './page-operation.ts';
import { example, schemaTable } from './page-schema.ts';
import { PAGE_STYLE } from './page-style.ts';

export function referencePage(document: OpenApiDocument, events: EventDocument): string {
  const groups = document.tags.map((tag) => ({ ...tag, operations: operationsOf(document, tag.name) }));
  const schemas = document.components.schemas as Schemas;
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

interface Group {
  readonly name: string;
  readonly operations: readonly Operation[];
}

function operationsOf({ paths }: OpenApiDocument, tag: string): readonly Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags.some((name) => name === tag))
      .map(([method, operation]) => ({ method, path, operation })),
  );
}

function navigation(groups: readonly Group[], events: EventDocument): Html {
  return html`<a class="home" href="#"><strong>API reference</strong></a>
<ul><li><a href="#phases">Phases</a></li><li><a href="#signed-requests">Signed requests</a></li><li><a href="#limits">Limits</a></li></ul>
${groups.map(
  ({ name, operations }) =>
    html`<h6><a href="#${name}">${name}</a></h6><ul>${operations.map(
      ({ method, path, operation }) =>
        html`<li><a href="#${operation.operationId}"><span class="method ${method}">${method}</span> ${path}</a></li>`,
    )}</ul>`,
)}
<h6><a href="#error-codes">Error codes</a></h6>
<h6><a href="#event-types">Event types</a></h6>
<ul>${Object.keys(events.$defs).map((type) => html`<li><a href="#${type}">${type}</a></li>`)}</ul>`;
}

function errorSection(): Html {
  return html`<h2 id="error-codes">Error codes</h2>
<table class="errors"><thead><tr><th>status</th><th>error</th><th>when, and what then</th></tr></thead><tbody>${ERRORS.map(
    ({ status, code, when, remedy, example: value }) => html`<tr id="${code}">
      <td><span class="status">${status}</span></td>
      <td><code>${code}</code></td>
      <td>${inline(sentence(when))} <em>${inline(sentence(remedy))}</em><details><summary>Example</summary>${example(value)}</details></td></tr>`,
  )}</tbody></table>`;
}

function eventSection({ description, $defs }: EventDocument): Html {
  return html`<h2 id="event-types">Event types</h2><p>${inline(description)}</p>
${Object.entries($defs).map(([type, { examples, ...schema }]) => {
  const { payload = {} } = schema.properties ?? {};
  return html`<section class="operation" id="${type}"><h3><code>${type}</code></h3>
${schemaTable(payload, {})}
<details><summary>A whole line</summary>${examples.map((value) => example(value))}</details></section>`;
})}`;
}
