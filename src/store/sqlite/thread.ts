/** The thread of a store: opens it, and does what it is asked to until that is to close it. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { packError } from '../../core/carried-error.js';
import { systemClock } from '../../core/clock.js';
import type { MigrationStep } from '../store.js';
import { openSqliteStore } from './store.js';
import {
  type FromThread,
  OPENING_ID,
  type PortShape,
  type ThreadOptions,
  type ToThread,
} from './thread-messages.js';

type Method = (...parameters: readonly unknown[]) => Promise<unknown>;

const port = parentPort as MessagePort;
const methods = new Map<string, Method>();

await answer(OPENING_ID, async () => {
  const { path, ...options } = workerData as ThreadOptions;
  const onMigration = (migration: MigrationStep): void => tell({ migration });
  const store = await openSqliteStore(path, { ...options, clock: systemClock, onMigration });
  port.on('message', ({ id, method, parameters }: ToThread) =>
    answer(id, async () => methods.get(method)?.(...parameters)).then(() => {
      if (method === 'close') port.close();
    }),
  );
  return shapeOf(store, '');
});

async function answer(id: number, work: () => Promise<unknown>): Promise<void> {
  try {
    tell({ id, value: await work() });
  } catch (error) {
    tell({ id, error: packError(error) });
  }
}

function tell(message: FromThread): void {
  port.postMessage(message);
}

/** @param path of a port that is part of another: `remote.` */
function shapeOf(of: object, path: string): PortShape {
  const shape = {
    facts: {} as Record<string, unknown>,
    methods: [] as string[],
    parts: {} as Record<string, PortShape>,
  };
  for (const name of namesIn(of)) {
    const value: unknown = Reflect.get(of, name);
    if (typeof value === 'function') {
      shape.methods.push(name);
      methods.set(path + name, value.bind(of));
    } else if (typeof value === 'object' && value !== null) {
      shape.parts[name] = shapeOf(value, `${path}${name}.`);
    } else {
      shape.facts[name] = value;
    }
  }
  return shape;
}

function namesIn(of: object): string[] {
  if (of === Object.prototype) return [];
  const own = Object.getOwnPropertyNames(of).filter((name) => name !== 'constructor');
  return [...own, ...namesIn(Object.getPrototypeOf(of))];
}
