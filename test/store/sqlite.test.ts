import { storeContract } from '../contract/store.contract.js';
import { openSqliteUnderTest } from './sqlite/sqlite-under-test.js';

storeContract('SQLite', openSqliteUnderTest);
