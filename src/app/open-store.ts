/** Opens the store that the settings name, as a reader or to change it. */
import { createHash } from 'node:crypto';
import { mkdir, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Settings } from '../config/settings.js';
import { stateFolder } from '../config/state-folder.js';
import { usageError } from '../core/errors.js';
import { isServerUrl, openStore, serverPlace, storePath } from '../store/open.js';
import type { Store } from '../store/store.js';
import { formatBytes } from '../ui/numbers.js';
import type { CommandContext } from './context.js';

/**
 * `write` makes a store where there is none. While it and `send` have the store open, calls are made, which do not wait for
 * it; `change` makes none.
 */
export type StoreMode = 'read' | 'change' | 'send' | 'write';

/** A smaller store is up to date before anybody wonders. */
const LARGE_STORE_BYTES = 32 * 1024 * 1024;

/** Opens the store for as long as `use` runs. @throws LlmBatchError (exit 5) as `openStore` does */
export async function withStore<Value>(
  context: CommandContext,
  settings: Settings,
  mode: StoreMode,
  use: (store: Store) => Promise<Value>,
): Promise<Value> {
  const store = await openStore(storeUrl(context, settings), {
    mode: mode === 'read' ? 'read' : 'write',
    create: mode === 'write',
    clock: context.clock,
    onThread: context.hasThreads && (mode === 'send' || mode === 'write'),
    workingFolder: context.workingFolder,
    schemaName: settings.schemaName,
    onMigration({ path, bytes, version, lastVersion }) {
      if (bytes < LARGE_STORE_BYTES || settings.quiet || settings.logJson) return;
      context.stderr.write(
        `${path} (${formatBytes(bytes)}) is brought up to date, once: schema ${version} of ${lastVersion}\n`,
      );
    },
  });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/**
 * Relative paths are relative to where the command was started.
 * @throws LlmBatchError STORE_URL_UNSUPPORTED (exit 2) where what may only reach files names a server
 */
export function storeUrl(context: CommandContext, { store, db }: Settings): string {
  if (store === null && isServerUrl(db)) {
    throw usageError('STORE_URL_UNSUPPORTED', 'A store on a server is no file.');
  }
  const named = store ?? db;
  return /^[a-z]+:/.test(named) ? named : resolve(context.workingFolder, named);
}

/**
 * What the names of files begin with that belong to a store that is open: beside its own file, the same by whatever name
 * that was opened; of a store on a server in a folder of this user's, wherever he works.
 */
async function besideStore(context: CommandContext, settings: Settings): Promise<string> {
  const url = storeUrl(context, settings);
  if (!isServerUrl(url)) return realpath(resolve(context.workingFolder, storePath(url)));
  const folder = join(stateFolder(context.environment) ?? tmpdir(), 'llm-batch', 'stores');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const place = serverPlace(url, settings.schemaName);
  return join(folder, createHash('sha256').update(place).digest('hex').slice(0, 16));
}

/** Where answers go that the store cannot take, and where the next owner of the store looks for them. */
export async function salvageFile(context: CommandContext, settings: Settings): Promise<string> {
  return `${await besideStore(context, settings)}.salvage.jsonl`;
}

/**
 * This process, in the store's eyes; another at every call. A container that is started again has the name and the
 * process number of the one that died, and must not be taken for it.
 */
export function workerIdOf({ hostName, processId, random }: CommandContext): string {
  const unique = Math.floor(random() * 2 ** 48).toString(36);
  return `${hostName}:${processId}:${unique}`;
}

/** Where the files of batches lie while they are made or read. */
export async function batchFolder(context: CommandContext, settings: Settings): Promise<string> {
  return `${await besideStore(context, settings)}.batches`;
}

/**
 * Makes this process the one that changes the store.
 * @param runName for whose sake; null: of whichever runs have work
 * @throws LlmBatchError STORE_LOCKED (exit 5)
 */
export function ownStore(context: CommandContext, store: Store, runName: string | null): Promise<void> {
  const { processId: pid, hostName: host, clock } = context;
  return store.acquireDrainLock({ pid, host, runName, sinceMs: clock.now() });
}

/** Where a stored path needs no trust: the folder where the user is now, and the one that the store came in, if it lies in one. */
export interface HomeFolders {
  readonly workingFolder: string;
  readonly storeFolder: string;
}

export async function homeFolders(context: CommandContext, settings: Settings): Promise<HomeFolders> {
  const { workingFolder } = context;
  const isOnServer = isServerUrl(storeUrl(context, settings));
  return {
    workingFolder,
    storeFolder: isOnServer ? workingFolder : dirname(await besideStore(context, settings)),
  };
}
