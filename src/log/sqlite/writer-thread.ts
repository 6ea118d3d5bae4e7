// The writer's thread has the only writing connection to the file. Each message is a transaction.
import { parentPort, workerData } from 'node:worker_threads';
import { openWriter } from './database-file.ts';
import { type DatabasePath, FileWatch } from './file-watch.ts';
import { failureOf, Transactions, type WriteRequest, type WriteResponse } from './transactions.ts';

const place: DatabasePath = workerData;
const db = openWriter(place.file);
const watch = new FileWatch(db, place);
const transactions = new Transactions(db, watch);

parentPort?.on('message', (request: WriteRequest | 'close') => {
  if (request === 'close') {
    db.close();
    watch.close();
    parentPort?.close();
    return;
  }
  let response: WriteResponse;
  try {
    response = { changes: transactions.run(request) };
  } catch (error) {
    response = { failure: failureOf(error) };
  }
  parentPort?.postMessage(response);
});
