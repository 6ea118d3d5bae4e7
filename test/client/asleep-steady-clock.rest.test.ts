import { itGoesOnAfter } from './asleep.ts';

itGoesOnAfter('a wall clock that stood still, a steady clock that is 3 hours later, and connections that were cut', {
  wallHours: 0,
  steadyHours: 3,
  lose: 'cut',
});
