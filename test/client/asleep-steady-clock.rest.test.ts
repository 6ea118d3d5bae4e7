import { itResumesAfter } from './asleep.ts';

itResumesAfter(
  'a wall clock that stood still, a steady clock that is 3 hours later, and connections that have been cut',
  {
    wallHours: 0,
    steadyHours: 3,
    lose: 'cut',
  },
);
