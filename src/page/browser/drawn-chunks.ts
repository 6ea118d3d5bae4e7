// Decides which chunks of a transcript are in the document: all chunks of a short transcript and in print, otherwise those near the screen,
// so that a log of any length scrolls equally well. Draws one chunk per frame.
import type { Element as Described } from '../../html/element.ts';
import type { LiveModel } from '../live-view.ts';

/** Transcripts up to this length are drawn whole, so that the browser's search and screenshots cover them. */
const WHOLE_EVENTS_MAX = 500;
const NEAR_PIXELS = 1_500;
const CHUNKS_PER_FRAME = 1;

export class DrawnChunks {
  readonly #drawn = new Map<number, { readonly version: string; readonly element: Described }>();
  /** The first chunk counts as near until the observer reports. */
  readonly #near = new Set([0]);
  readonly #observer: IntersectionObserver;
  readonly #onChange: () => void;
  isPrinted = false;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
    this.#observer = new IntersectionObserver((entries) => this.#note(entries), { rootMargin: `${NEAR_PIXELS}px 0px` });
  }

  /** Returns the members of the model for one frame. */
  frame(eventCount: number): Pick<LiveModel, 'isDrawn' | 'memo'> {
    const isWhole = this.isPrinted || eventCount <= WHOLE_EVENTS_MAX;
    let left = this.isPrinted ? Number.POSITIVE_INFINITY : CHUNKS_PER_FRAME;
    return {
      isDrawn: (place) => isWhole || this.#near.has(place),
      memo: (place, version, make) => {
        const known = this.#drawn.get(place);
        if (known?.version === version) return known.element;
        if (left-- <= 0) {
          this.#onChange();
          return known?.element;
        }
        const element = make();
        this.#drawn.set(place, { version, element });
        return element;
      },
    };
  }

  /** Must be called after each frame. */
  observe(root: Element): void {
    for (const chunk of root.getElementsByClassName('chunk')) this.#observer.observe(chunk);
  }

  #note(entries: readonly IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting, boundingClientRect } of entries) {
      const place = Number(target.getAttribute('data-place'));
      if (isIntersecting) this.#near.add(place);
      else this.#near.delete(place);
      // Lets the chunk keep its height when it is emptied.
      if (target instanceof HTMLElement && target.firstChild !== null)
        target.style.setProperty('--height', `${boundingClientRect.height}px`);
    }
    this.#onChange();
  }
}
