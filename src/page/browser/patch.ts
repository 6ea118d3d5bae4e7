// Patches a part of the document to match elements given as data. Leaves equal nodes untouched, so that focus, scrolling and opened details
// survive, and reuses the nodes of the service's HTML.
import type { Element as Described } from '../../html/element.ts';

const SVG = 'http://www.w3.org/2000/svg';
/** The data that each node was last patched with. */
const sources = new WeakMap<Node, Described>();

export function patchChildren(parent: Element, children: Described['children']): void {
  for (const [index, child] of children.entries()) {
    const node =
      reusableNode(parent, children, index) ??
      parent.insertBefore(createNode(parent, child), parent.childNodes[index] ?? null);
    if (typeof child !== 'string') patch(node as Element, child);
    else if (node.textContent !== child) node.textContent = child;
  }
  while (parent.childNodes.length > children.length) parent.lastChild?.remove();
}

/** Returns the node at the index if the child describes it. Keeps a node that a later child describes, and removes others. */
function reusableNode(parent: Element, children: Described['children'], index: number): ChildNode | undefined {
  for (;;) {
    const node = parent.childNodes[index];
    if (node === undefined || describes(children[index], node)) return node;
    if (children.some((later, at) => at > index && describes(later, node))) return undefined;
    node.remove();
  }
}

function describes(child: Described | string | undefined, node: Node): boolean {
  if (typeof child === 'string' || child === undefined) return child !== undefined && node instanceof Text;
  return node instanceof Element && node.localName === child.tag && node.id === (child.attributes['id'] ?? '');
}

function createNode(parent: Element, child: Described | string): ChildNode {
  if (typeof child === 'string') return document.createTextNode(child);
  return document.createElementNS(child.tag === 'svg' ? SVG : parent.namespaceURI, child.tag);
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
    // Keeps the reader's changes, e.g. opened details.
    if (!isPresent(value) || before?.attributes[name] === value || element.getAttribute(name) === text) continue;
    element.setAttribute(name, text);
    if (element instanceof HTMLInputElement && name === 'value') element.value = text;
  }
  patchChildren(element, described.children);
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== false;
}
