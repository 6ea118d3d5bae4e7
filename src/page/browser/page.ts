// The script of the page: its custom elements.
import { LiveChamber } from './chamber-element.ts';
import { LiveList } from './list-element.ts';

customElements.define('live-list', LiveList);
customElements.define('live-chamber', LiveChamber);
