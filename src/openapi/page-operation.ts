// One endpoint on the reference page.
import { type Html, html } from './html.ts';
import type { Schemas } from './json-schema.ts';
import { inline } from './markdown.ts';
import type { OperationObject, ResponseObject } from './operation.ts';
import { example, ruleOf, schemaTable, typeOf } from './page-schema.ts';

export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
}

export function operationSection({ method, path, operation }: Operation, schemas: Schemas): Html {
  const { operationId, summary, description = '', security } = operation;
  const signed = security.length === 0 ? '' : security.length === 1 ? 'signed' : 'may be signed';
  return html`<section class="operation" id="${operationId}">
    <h3><span class="method ${method}">${method}</span> <code>${path}</code>${signed && html` <em>${signed}</em>`}</h3>
    <p><strong>${summary}.</strong> ${inline(description)}</p>
    ${parameterTable(operation, schemas)}
    ${requestPart(operation, schemas)}
    ${answers(operation).map(([status, response]) => answerPart(status, response, schemas))}
    ${refusals(operation)}
  </section>`;
}

function parameterTable({ parameters }: OperationObject, schemas: Schemas): Html | string {
  if (parameters === undefined) return '';
  return html`<table><thead><tr><th>parameter</th><th>type</th><th>rule</th></tr></thead><tbody>${parameters.map(
    (parameter) => html`<tr>
      <td><code>${parameter.name}</code> <i>${parameter.in}</i></td>
      <td>${typeOf(parameter.schema, schemas)}${parameter.required ? '' : html` <i>optional</i>`}</td>
      <td>${ruleOf({ ...parameter.schema, description: parameter.description }, schemas)}</td></tr>`,
  )}</tbody></table>`;
}

function requestPart({ requestBody }: OperationObject, schemas: Schemas): Html | string {
  if (requestBody === undefined) return '';
  const { schema, example: value } = requestBody.content['application/json'];
  return html`<h4>Body${requestBody.required ? '' : html` <i>optional</i>`}</h4>
    ${schemaTable(schema, schemas)}${isEmpty(value) ? '' : example(value)}`;
}

function isEmpty(value: unknown): boolean {
  return JSON.stringify(value) === '{}';
}

function answers({ responses }: OperationObject): readonly (readonly [string, ResponseObject])[] {
  return Object.entries(responses).filter(([status]) => status < '300');
}

function answerPart(status: string, { description, content = {} }: ResponseObject, schemas: Schemas): Html {
  const media = Object.entries(content);
  return html`<h4>Answer <span class="status">${status}</span></h4><p>${inline(description)}</p>
    ${media.map(([type, { schema, example: value }]) =>
      type === 'application/json'
        ? html`${example(value)}<details><summary>Members</summary>${schemaTable(schema, schemas)}</details>`
        : html`<p><code>${type}</code></p>${example(value)}`,
    )}`;
}

/** Those that the endpoint has beyond the usual ones, and all of them behind it. */
function refusals({ responses }: OperationObject): Html {
  const rows = Object.entries(responses).filter(([status]) => status >= '400' && status !== 'default');
  return html`<h4>Refusals</h4><p class="refusals">${rows.map(
    ([status, { description }]) =>
      html`<span><span class="status">${status}</span> ${description.split(' or ').map(codeLink)}</span> `,
  )}</p>`;
}

function codeLink(code: string): Html {
  return html`<a href="#${code}"><code>${code}</code></a> `;
}
