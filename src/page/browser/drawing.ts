// When a part of the page is drawn: at most once a frame, and never while a pointer is pressed on it, because what moves or is
// replaced between press and release loses the click.

export class Drawing {
  readonly #draw: () => void;
  #isScheduled = false;
  #isPressed = false;

  constructor(draw: () => void) {
    this.#draw = draw;
  }

  /** Watches presses on the element until the signal. */
  watch(element: HTMLElement, signal: AbortSignal): void {
    element.addEventListener(
      'pointerdown',
      // A slider is dragged to see what it shows.
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
      // The release schedules it again.
      if (!this.#isPressed) this.#draw();
    });
  }
}
