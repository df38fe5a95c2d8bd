import { storeContract } from '../contract/store.contract.js';
import { openSqliteUnderTest, openThreadedUnderTest } from './sqlite/sqlite-under-test.js';

storeContract('SQLite', () => openSqliteUnderTest());
storeContract('SQLite on a thread of its own', openThreadedUnderTest);
