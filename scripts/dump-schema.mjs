// Writes src/store/sqlite/schema.sql from the migrations, for people to read and for reviews to show what changed.
import { writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describeSchema, migrate } from '../build/store/sqlite/migrations.js';

const database = new Database(':memory:');
migrate(database);
writeFileSync(new URL('../src/store/sqlite/schema.sql', import.meta.url), describeSchema(database));
