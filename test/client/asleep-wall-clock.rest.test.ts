import { itResumesAfter } from './asleep.ts';

itResumesAfter(
  'a wall clock that is 3 hours later, a steady clock that stood still, and connections that have been cut',
  {
    wallHours: 3,
    steadyHours: 0,
    lose: 'cut',
  },
);
