/** What the parent sends to a task that goes on until it is told to end. */
export const INTERRUPT = 'interrupt';
