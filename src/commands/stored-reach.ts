/**
 * Where a stored run leads: to servers with keys, to files elsewhere. A store may have come from anybody, so what it
 * says of these counts only where this user has used it on this machine, or where this call names it.
 */
import { lstatSync, type Stats } from 'node:fs';
import { dirname, parse } from 'node:path';
import type { CommandContext } from '../app/context.js';
import { type HomeFolders, homeFolders } from '../app/open-store.js';
import { variablesOf } from '../config/header-texts.js';
import { isInside } from '../config/inside.js';
import type { ResolvedSettings } from '../config/load.js';
import { type TrustedFact, TrustRecord } from '../config/trust-record.js';
import { type LlmBatchError, usageError } from '../core/errors.js';
import type { TellEvent } from '../core/event.js';
import type { OutputPaths } from '../results/output-paths.js';
import { imageFolderOf, lanesOf, OPENAI_BASE_URL, type RunSettings } from '../runs/run-settings.js';
import { shellWord } from '../ui/next-command.js';
import { connectionOf } from './asked-settings.js';
import { trustOrRefuse } from './confirm.js';

export const TRUST_STORE_FLAG = [
  '--trust-store',
  'use the servers, keys and folders that the store names without asking',
] as const;

/**
 * Before a stored run is sent on, or its servers are asked anything.
 * @param settings of the run, with the flags of this call
 * @param isSure `--trust-store` was given: nobody is asked
 * @throws LlmBatchError STORE_UNTRUSTED (exit 2) after a no, and where nobody is there to be asked
 */
export async function trustStoredRun(
  context: CommandContext,
  settings: RunSettings,
  resolved: ResolvedSettings,
  isSure = false,
): Promise<void> {
  if (isSure) return;
  const unknown = await unknownFacts(context, settings, resolved);
  if (unknown.length === 0) return;
  await trustOrRefuse(
    context,
    unknown,
    `The store names what you have not used on this machine: ${saidOf(unknown)}. Did you mean to use it?`,
    untrusted(unknown),
  );
}

/**
 * The same where nobody is asked.
 * @throws LlmBatchError STORE_UNTRUSTED (exit 2)
 */
export async function refuseUntrusted(
  context: CommandContext,
  settings: RunSettings,
  resolved: ResolvedSettings,
): Promise<void> {
  const unknown = await unknownFacts(context, settings, resolved);
  if (unknown.length > 0) throw untrusted(unknown);
}

async function unknownFacts(
  context: CommandContext,
  settings: RunSettings,
  resolved: ResolvedSettings,
): Promise<readonly TrustedFact[]> {
  const homes = await homeFolders(context, resolved.settings);
  const record = new TrustRecord(context.environment);
  const ownServers = serversOf({ ...settings, connection: connectionOf(resolved) });
  const isOwn = (fact: TrustedFact): boolean =>
    ownServers.some(({ name, detail }) => name === fact.name && detail === fact.detail) || record.knows(fact);
  return [...serversOf(settings), ...filesReadBy(settings, homes)].filter((fact) => !isOwn(fact));
}

function saidOf(facts: readonly TrustedFact[]): string {
  return facts
    .map(({ kind, name, detail }) => (kind === 'server' ? `${name} with the key in ${detail}` : name))
    .join(', ');
}

function untrusted(facts: readonly TrustedFact[]): LlmBatchError {
  return usageError(
    'STORE_UNTRUSTED',
    `The store names what this user has not used on this machine: ${saidOf(facts)}.`,
    'if the store is yours, add --trust-store; or name the server and the key yourself: --base-url URL --api-key-env NAME',
  );
}

/** Notes where a run leads that this user has started, or agreed to, so that nothing is asked when it goes on. */
export function rememberReach(
  context: CommandContext,
  tell: TellEvent,
  settings: RunSettings,
  paths: OutputPaths,
  homes: HomeFolders,
): void {
  const record = new TrustRecord(context.environment);
  const places = [
    writeFact(paths.errors, true),
    writeFact(paths.rejects, true),
    ...(paths.results === null ? [] : [writeFact(paths.results, settings.output === null)]),
  ].filter(({ name }) => !isAtHome(name, homes));
  const facts = [...serversOf(settings), ...filesReadBy(settings, homes), ...places];
  if (facts.every((fact) => record.remember(fact))) return;
  const message =
    'which servers and folders this run uses could not be noted for this user: `resume` will ask';
  tell({ type: 'warning', message });
}

/**
 * Before a file is written where a stored path says.
 * @param path null for standard output
 * @param isDerived the name follows from another file's by this program's own rule
 * @throws LlmBatchError OUTPUT_OUTSIDE (exit 2)
 */
export function refuseForeignPlace(
  context: CommandContext,
  path: string | null,
  isDerived: boolean,
  homes: HomeFolders,
): void {
  if (path !== null && isDerived) refuseOddPlace(path);
  if (path === null || isAtHome(path, homes)) return;
  if (new TrustRecord(context.environment).knows(writeFact(path, isDerived))) return;
  throw usageError(
    'OUTPUT_OUTSIDE',
    `The store says to write ${path}, which is outside this folder and that of the store, and where this user has not written before.`,
    `if that is right, say so: -o ${shellWord(path)}`,
  );
}

/**
 * Before a file is written whose name the user has not typed: a folder that came from somebody may have a link or a
 * pipe in its place.
 * @throws LlmBatchError OUTPUT_OUTSIDE (exit 2)
 */
export function refuseOddPlace(path: string): void {
  const found = lstatOrNull(path);
  if (found === null || found.isFile() || found.isDirectory()) return;
  if (found.isSymbolicLink() && isInside(dirname(path), path)) return;
  throw usageError(
    'OUTPUT_OUTSIDE',
    `${path} is ${found.isSymbolicLink() ? 'a link that leads out of its folder' : 'a pipe, a socket or a device'}.`,
    'move it away, or say where results go: -o FILE',
  );
}

/** Null where nothing is there, also because a folder on the way is none: whoever writes there says so. */
function lstatOrNull(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

/** The program's own server and variable need no trust. */
function isDefault({ name, detail }: TrustedFact): boolean {
  return name === OPENAI_BASE_URL && detail === 'OPENAI_API_KEY';
}

function serversOf(settings: RunSettings): TrustedFact[] {
  if (settings.simulator !== null) return [];
  return lanesOf(settings)
    .map(
      (lane): TrustedFact => ({
        kind: 'server',
        name: addressOf(lane.baseUrl),
        detail: [...new Set([lane.apiKeyEnv, ...variablesOf(lane.headers).sort()])].join(', '),
      }),
    )
    .filter((fact) => !isDefault(fact));
}

/** The whole address: on one host several tenants may live. */
function addressOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).href.replace(/\/+$/, '') : baseUrl;
}

function filesReadBy({ request, pricesFile }: RunSettings, homes: HomeFolders): TrustedFact[] {
  const imageFolder = imageFolderOf(request);
  const images = imageFolder !== null && request.allowAnyPath ? parse(imageFolder).root : imageFolder;
  return [images, pricesFile].flatMap((path): TrustedFact[] =>
    path === null || isAtHome(path, homes) ? [] : [{ kind: 'path', name: path, detail: 'read' }],
  );
}

/** A name that follows from another is trusted with its folder: nothing there can be overwritten by it. */
function writeFact(path: string, isDerived: boolean): TrustedFact {
  return isDerived
    ? { kind: 'path', name: dirname(path), detail: 'written beside' }
    : { kind: 'path', name: path, detail: 'written' };
}

function isAtHome(path: string, { workingFolder, storeFolder }: HomeFolders): boolean {
  return isInside(workingFolder, path) || isInside(storeFolder, path);
}
