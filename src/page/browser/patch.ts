// Brings a part of the document in line with an element as data. What is equal stays untouched, so that focus, scrolling
// and opened details survive; the HTML that the service sent is adopted.
import type { Element as Described } from '../../html/element.ts';

const SVG = 'http://www.w3.org/2000/svg';
/** What each node was made from last. */
const sources = new WeakMap<Node, Described>();

/** Makes the described children the only ones of the parent. */
export function patchChildren(parent: Element, children: Described['children']): void {
  for (const [index, child] of children.entries()) {
    const node = parent.childNodes[index];
    if (typeof child === 'string') {
      if (node instanceof Text) {
        if (node.data !== child) node.data = child;
      } else place(parent, document.createTextNode(child), node);
    } else if (node instanceof Element && node.localName === child.tag && node.id === (child.attributes['id'] ?? '')) {
      patch(node, child);
    } else {
      const made = document.createElementNS(child.tag === 'svg' ? SVG : parent.namespaceURI, child.tag);
      place(parent, made, node);
      patch(made, child);
    }
  }
  while (parent.childNodes.length > children.length) parent.lastChild?.remove();
}

function place(parent: Element, made: Node, node: ChildNode | undefined): void {
  if (node === undefined) parent.append(made);
  else node.replaceWith(made);
}

function patch(element: Element, described: Described): void {
  const before = sources.get(element);
  if (before === described) return;
  sources.set(element, described);
  for (const [name, value] of Object.entries(before?.attributes ?? {})) {
    if (isPresent(value) && !isPresent(described.attributes[name])) element.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(described.attributes)) {
    const text = value === true ? '' : String(value);
    // What the reader changed since, an opened detail for example, stays.
    if (!isPresent(value) || before?.attributes[name] === value || element.getAttribute(name) === text) continue;
    element.setAttribute(name, text);
    if (element instanceof HTMLInputElement && name === 'value') element.value = text;
  }
  patchChildren(element, described.children);
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== false;
}
