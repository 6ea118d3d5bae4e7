import { itGoesOnAfter } from './asleep.ts';

itGoesOnAfter('a wall clock that is 3 hours later, and connections that carry nothing any more', {
  wallHours: 3,
  steadyHours: 0,
  lose: 'forget',
});
