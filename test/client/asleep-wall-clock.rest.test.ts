import { itGoesOnAfter } from './asleep.ts';

itGoesOnAfter('a wall clock that is 3 hours later, a steady clock that stood still, and connections that were cut', {
  wallHours: 3,
  steadyHours: 0,
  lose: 'cut',
});
