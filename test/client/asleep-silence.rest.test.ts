import { itResumesAfter } from './asleep.ts';

itResumesAfter('a wall clock that is 3 hours later, and connections that no longer pass bytes', {
  wallHours: 3,
  steadyHours: 0,
  lose: 'forget',
});
