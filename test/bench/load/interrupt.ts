/** What the parent sends to a task that runs until it is told to end. */
export const INTERRUPT = 'interrupt';
