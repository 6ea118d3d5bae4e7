// Draws a part of the page at most once per frame, and never while a pointer is pressed on it: an element that moves or is replaced
// between press and release loses the click.

export class Drawing {
  readonly #draw: () => void;
  #isScheduled = false;
  #isPressed = false;

  constructor(draw: () => void) {
    this.#draw = draw;
  }

  /** Watches presses on the element until the signal aborts. */
  watch(element: HTMLElement, signal: AbortSignal): void {
    element.addEventListener(
      'pointerdown',
      // Dragging the slider does not suspend drawing.
      ({ target }) => {
        this.#isPressed = !(target instanceof HTMLInputElement && target.type === 'range');
      },
      { signal },
    );
    const release = () => {
      this.#isPressed = false;
      this.schedule();
    };
    for (const type of ['pointerup', 'pointercancel', 'blur']) addEventListener(type, release, { signal });
  }

  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      // The release schedules the next frame.
      if (!this.#isPressed) this.#draw();
    });
  }
}
