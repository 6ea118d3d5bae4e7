// The simulation's store passes the conformance tests of the ports.
import { describePort } from '../log/conformance.ts';
import { MemoryDatabase } from './simulation/memory-database.ts';
import { openMemoryStore } from './simulation/memory-store.ts';

describePort(async () => {
  const database = new MemoryDatabase();
  return { store: openMemoryStore(database), reopen: async () => openMemoryStore(database) };
});
