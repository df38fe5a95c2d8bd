/**
 * The whole program, with one point at which it kills itself: `node failpoints.mjs MODULES POINT COUNT node dist/cli.js …`
 * kills with SIGKILL when POINT is reached for the COUNTth time. It needs no tool of the operating system, and the
 * program needs no hook for it: methods of its own classes are wrapped before its entry is loaded, and before that of its
 * store's thread. Two points do not kill: from `full` on the store may not grow until a file named `room` lies in the
 * working folder, and at `dead thread` the store's thread ends and nothing else.
 */
import { existsSync, writeSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import threads, { isMainThread, Worker } from 'node:worker_threads';

// A thread has the arguments of the process.
const [node, , modules, point, count, , , ...programArguments] =
  threads.getEnvironmentData('arguments') ?? process.argv;
let left = Number(count);

function load(path) {
  return import(pathToFileURL(join(modules, path)).href);
}

const { SqliteStore } = await load('store/sqlite/store.js');
const { Connection } = await load('store/sqlite/connection.js');
const { Journal } = await load('engine/journal.js');

/** Reached counts once for each time that it is true. */
function reach(isReached = true) {
  if (!isReached) return;
  left -= 1;
  if (left > 0) return;
  writeSync(2, `failpoint: killed at ${point}\n`);
  process.kill(process.pid, 'SIGKILL');
}

function before(prototype, method, isReached) {
  const original = prototype[method];
  prototype[method] = function (...parameters) {
    reach(isReached(...parameters));
    return original.apply(this, parameters);
  };
}

function after(prototype, method, isReached) {
  const original = prototype[method];
  prototype[method] = async function (...parameters) {
    const value = await original.apply(this, parameters);
    reach(isReached(value, ...parameters));
    return value;
  };
}

const POINTS = {
  /** A page of documents is in the store, the import is not over. */
  'after an import page': () => after(SqliteStore.prototype, 'addTasks', () => true),
  /** Tasks are ours, nobody has been called. */
  'after a claim': () => after(SqliteStore.prototype, 'claimTasks', (tasks) => tasks.length > 0),
  /** The ledger holds a call that has not left. */
  'after a call start': () => after(Journal.prototype, 'start', (callId) => callId !== null),
  /** An answer is here, in memory only. */
  'after a reply': () => before(Journal.prototype, 'settle', isAnswer),
  /** A group of answers is about to be committed. */
  'before a commit': () =>
    before(SqliteStore.prototype, 'record', (_, settlements) => settlements.some(isAnswer)),
  /** A group of answers is on the disk, and nobody has been told. */
  'after a commit': () =>
    after(SqliteStore.prototype, 'record', (_, __, settlements) => settlements.some(isAnswer)),
  /** Everything is answered and stored, the run is not marked as finished. */
  'before the end': () =>
    before(SqliteStore.prototype, 'updateRun', (_, change) => change.status === 'finished'),
  /** SQLite itself refuses to let the file grow, as it does on a full disk. */
  full: () => {
    const original = Connection.prototype.write;
    Connection.prototype.write = function (work) {
      left -= 1;
      if (left === 0) {
        const pages = this.database.pragma('page_count', { simple: true });
        this.database.pragma(`max_page_count = ${pages}`);
      } else if (left < 0 && existsSync('room')) {
        this.database.pragma('max_page_count = 1000000');
      }
      return original.call(this, work);
    };
  },
  /** As one that has no memory left; in a thread `exit` ends no more than that. */
  'dead thread': () => {
    const original = SqliteStore.prototype.record;
    SqliteStore.prototype.record = function (...parameters) {
      if (parameters[1].some(isAnswer)) left -= 1;
      if (left <= 0) process.exit();
      return original.apply(this, parameters);
    };
  },
  /** What a crash left has been put back. */
  'after a rescue': () => after(SqliteStore.prototype, 'rescueTasks', () => true),
};

function isAnswer({ outcomes }) {
  return outcomes.some(({ action }) => action === 'completed');
}

POINTS[point]();
if (isMainThread) {
  threads.setEnvironmentData('arguments', process.argv);
  threads.Worker = class extends Worker {
    constructor(file, options) {
      super(file, { ...options, execArgv: ['--import', import.meta.url] });
    }
  };
  syncBuiltinESMExports();
  process.argv = [node, join(modules, 'cli.js'), ...programArguments];
  await load('cli.js');
}
