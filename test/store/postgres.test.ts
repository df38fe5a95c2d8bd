import { storeContract } from '../contract/store.contract.js';
import { openPostgresUnderTest } from './postgres/postgres-under-test.js';

storeContract('PostgreSQL', openPostgresUnderTest);
