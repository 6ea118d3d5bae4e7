import { openStore, temporaryPostgres } from '../../kit/postgres.ts';
import { describeWithholding } from '../withheld.ts';

async function begin() {
  const place = await temporaryPostgres();
  return { place, open: () => openStore(place) };
}

describeWithholding(begin);
