// The writer thread, which has the only writing connection to the file. Each message is a transaction.
import { parentPort, workerData } from 'node:worker_threads';
import { openWriter } from './database-file.ts';
import { type DatabasePath, FileWatch } from './file-watch.ts';
import { type EraseRequest, responseTo, Transactions, type WriteRequest } from './transactions.ts';

const location: DatabasePath = workerData;
const db = openWriter(location.file);
const watch = new FileWatch(db, location);
const transactions = new Transactions(db, watch);

parentPort?.on('message', (request: WriteRequest | EraseRequest | 'close') => {
  if (request === 'close') {
    db.close();
    watch.close();
    parentPort?.close();
    return;
  }
  parentPort?.postMessage(responseTo(request, transactions));
});
