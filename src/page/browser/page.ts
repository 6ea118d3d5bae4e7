// The page's script: defines the custom elements, and opens files that the reader chooses or drops anywhere.
import { LiveChamber } from './chamber-element.ts';
import { LiveList } from './list-element.ts';

customElements.define('live-list', LiveList);
customElements.define('live-chamber', LiveChamber);

addEventListener('dragover', (event) => event.preventDefault());
addEventListener('drop', (event) => {
  event.preventDefault();
  openFile(event.dataTransfer?.files[0]);
});
addEventListener('change', ({ target }) => {
  if (target instanceof HTMLInputElement && target.type === 'file') openFile(target.files?.[0]);
});

function openFile(file: File | undefined): void {
  const shown = document.querySelector<HTMLElement>('live-list, live-chamber');
  if (file === undefined || shown === null) return;
  const chamber = new LiveChamber();
  chamber.file = file;
  chamber.dataset['worker'] = shown.dataset['worker'] ?? '';
  history.replaceState(null, '', location.pathname + location.search);
  document.title = file.name;
  shown.replaceWith(chamber);
}
