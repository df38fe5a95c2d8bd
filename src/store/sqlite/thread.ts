/** The thread of a store: opens it, and does what it is asked to until that is to close it. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { packError } from '../../core/carried-error.js';
import { systemClock } from '../../core/clock.js';
import type { MigrationStep, Store } from '../store.js';
import { openSqliteStore } from './store.js';
import {
  type FromThread,
  OPENING_ID,
  type PortShape,
  type ThreadOptions,
  type ToThread,
} from './thread-messages.js';

if (parentPort !== null) {
  const { path, ...options } = workerData as ThreadOptions;
  await serveStore(parentPort, (onMigration) =>
    openSqliteStore(path, { ...options, clock: systemClock, onMigration }),
  );
}

type Methods = Map<string, (...parameters: readonly unknown[]) => Promise<unknown>>;

/** @param open told whom to tell of migrations */
export function serveStore(
  port: MessagePort,
  open: (onMigration: (step: MigrationStep) => void) => Promise<Store>,
): Promise<void> {
  const tell = (message: FromThread): void => port.postMessage(message);
  const answer = async (id: number, work: () => Promise<unknown>): Promise<void> => {
    try {
      tell({ id, value: await work() });
    } catch (error) {
      tell({ id, error: packError(error) });
    }
  };
  return answer(OPENING_ID, async () => {
    const methods: Methods = new Map();
    const shape = shapeOf(await open((migration) => tell({ migration })), '', methods);
    port.on('message', async ({ id, method, parameters }: ToThread) => {
      await answer(id, async () => methods.get(method)?.(...parameters));
      if (method === 'close') port.close();
    });
    return shape;
  });
}

/** @param path of a port that is part of another: `remote.` @param methods is given those of the port, by path and name */
function shapeOf(port: object, path: string, methods: Methods): PortShape {
  const shape = {
    facts: {} as Record<string, unknown>,
    methods: [] as string[],
    parts: {} as Record<string, PortShape>,
  };
  for (const name of namesIn(port)) {
    const value: unknown = Reflect.get(port, name);
    if (typeof value === 'function') {
      shape.methods.push(name);
      methods.set(path + name, value.bind(port));
    } else if (typeof value === 'object' && value !== null) {
      shape.parts[name] = shapeOf(value, `${path}${name}.`, methods);
    } else {
      shape.facts[name] = value;
    }
  }
  return shape;
}

function namesIn(port: object): string[] {
  if (port === Object.prototype) return [];
  const own = Object.getOwnPropertyNames(port).filter((name) => name !== 'constructor');
  return [...own, ...namesIn(Object.getPrototypeOf(port))];
}
