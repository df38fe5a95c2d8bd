/**
 * The salvage file: settlements that were paid for and could not be stored, because the disk was full or broken; one
 * a line. They carry the token of their claim, so they can be recorded later as if nothing had happened, as long as
 * nobody else has taken the task meanwhile.
 */
import { createHash } from 'node:crypto';
import { constants, lstatSync } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CallEnd } from '../core/call.js';
import { EXIT_CODES, LlmBatchError } from '../core/errors.js';
import { FAILURE_KINDS } from '../core/failure.js';
import type { Settlement, TaskError, TaskOutcome } from '../core/outcome.js';
import {
  amount,
  either,
  listOf,
  objectOf,
  oneOf,
  orNull,
  positive,
  type Shape,
  text,
  truth,
} from '../core/shape.js';
import type { Store } from '../store/store.js';

/** Anybody may put a file, a link to one or a pipe into the folder for temporary files: none is followed or waited on. */
const WARILY = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * The file itself, where outcomes are found whatever becomes of the environment, then one in the system's folder for
 * temporary files, which is often on another disk than the one that is full.
 */
function placesOf(path: string): readonly string[] {
  const name = createHash('sha256').update(path).digest('hex').slice(0, 16);
  return [path, join(tmpdir(), `llm-batch-${name}.salvage.jsonl`)];
}

/**
 * @param path beside the store; when that disk is full too, another is found
 * @returns the path of the file that took them
 * @throws LlmBatchError SALVAGE_FAILED (exit 5) when nothing can be written anywhere
 */
export async function saveSalvage(path: string, settlements: readonly Settlement[]): Promise<string> {
  // A disk that filled up in the middle of an earlier line must not spoil the first one now.
  const text = `\n${settlements.map((settlement) => JSON.stringify(settlement)).join('\n')}\n`;
  const places = placesOf(path);
  let cause: unknown;
  for (const place of places) {
    try {
      await appendDurably(place, text);
      return place;
    } catch (error) {
      cause = error;
    }
  }
  const answers = settlements.flatMap(({ outcomes }) => outcomes).length;
  const count = answers === 1 ? '1 answer' : `${answers} answers`;
  throw new LlmBatchError(`${count} could not be stored, nor saved to ${places.join(' or ')}.`, {
    code: 'SALVAGE_FAILED',
    exitCode: EXIT_CODES.store,
    hint: 'Free some disk space, then `llm-batch resume`: it sends those documents again.',
    cause,
  });
}

/**
 * Records what an earlier process had to leave behind, before its tasks are put back, and removes the files.
 * @returns how many outcomes were still wanted
 * @throws LlmBatchError STORE_* (exit 5); the files then stay as they are
 */
export async function applySalvage(store: Store, path: string): Promise<number> {
  let applied = 0;
  for (const place of placesOf(path)) {
    const text = await readOwn(place);
    if (text === null) continue;
    const settlements = text.split('\n').flatMap(settlementOf);
    const { lostTaskIds } = await store.record([], settlements);
    applied += settlements.flatMap(({ outcomes }) => outcomes).length - lostTaskIds.length;
    // Applied again it changes nothing.
    await unlink(place).catch(() => undefined);
  }
  return applied;
}

/** The files that wait for the next start. */
export function findSalvage(path: string): readonly string[] {
  return placesOf(path).filter((place) => lstatSync(place, { throwIfNoEntry: false })?.isFile());
}

/** None for a line that was cut, as the disk may have filled up in the middle of it, nor for one that is not ours. */
function settlementOf(line: string): Settlement[] {
  try {
    const found: unknown = JSON.parse(line || 'null');
    if (SETTLEMENT(found) === null) return [found as Settlement];
    return EARLIER_OUTCOME(found) === null ? [ofEarlierOutcome(found as EarlierOutcome)] : [];
  } catch {
    return [];
  }
}

/** As a line was when a call had one task: an outcome with its call inside, and with times that have passed by now. */
type EarlierOutcome = Omit<TaskOutcome, 'share'> & {
  readonly call: Omit<CallEnd, 'message'> | null;
  readonly error?: TaskError;
  readonly throttledSinceMs?: number | null;
};

function ofEarlierOutcome({ call, throttledSinceMs = null, ...outcome }: EarlierOutcome): Settlement {
  const share = call && { usage: call.usage, costMicroUsd: call.costMicroUsd };
  const now = { delayMs: 0, isThrottled: throttledSinceMs !== null };
  return {
    call: call && { ...call, message: outcome.error?.message ?? null },
    outcomes: [{ ...outcome, ...now, share } as unknown as TaskOutcome],
  };
}

/** Null, where a field that is not there does not do. */
function nullOr(shape: Shape): Shape {
  return either(oneOf(null), shape);
}

const USAGE = objectOf({
  inputTokens: amount,
  outputTokens: amount,
  cachedTokens: amount,
  reasoningTokens: amount,
});
const BILL = { usage: nullOr(USAGE), costMicroUsd: nullOr(amount) };
const CALL = {
  ...BILL,
  callId: positive,
  finishedAtMs: amount,
  latencyMs: amount,
  httpStatus: nullOr(amount),
  kind: nullOr(oneOf(...FAILURE_KINDS, 'aborted')),
  requestId: nullOr(text),
};
const ERROR = objectOf({
  kind: oneOf(...FAILURE_KINDS),
  message: text,
  httpStatus: nullOr(amount),
  code: nullOr(text),
  requestId: nullOr(text),
  partialOutputJson: nullOr(text),
});
const RESULT = objectOf({
  outputJson: text,
  model: text,
  finishReason: text,
  detailsJson: orNull(text),
  responseJson: orNull(text),
});

type Fields = Readonly<Record<string, Shape>>;

/** Of a `TaskOutcome` with more fields, in all, in a retry and in a release: the file lies where others may write. */
function outcomeWith(more: Fields, ofRetry: Fields, ofRelease: Fields): Shape {
  const task = { ...more, taskId: positive, attemptToken: text };
  return either(
    objectOf({ ...task, action: oneOf('completed'), result: RESULT, atMs: amount }),
    objectOf({ ...task, action: oneOf('failed'), error: ERROR, atMs: amount }),
    objectOf({ ...task, ...ofRetry, action: oneOf('retry'), error: ERROR }),
    objectOf({ ...task, ...ofRelease, action: oneOf('released') }),
  );
}
const SETTLEMENT = objectOf({
  call: nullOr(objectOf({ ...CALL, message: nullOr(text) })),
  outcomes: listOf(
    outcomeWith(
      { share: nullOr(objectOf(BILL)) },
      { delayMs: amount },
      { delayMs: nullOr(amount), isThrottled: truth },
    ),
  ),
});
const EARLIER_OUTCOME = outcomeWith({ call: nullOr(objectOf(CALL)) }, {}, {});

async function appendDurably(path: string, text: string): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | WARILY;
  const handle = await open(path, flags, 0o600);
  try {
    if (!(await isOwn(handle))) throw new Error(`${path} belongs to somebody else`);
    await handle.appendFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Null when there is no such file of ours. */
async function readOwn(path: string): Promise<string | null> {
  let handle: FileHandle;
  try {
    handle = await open(path, constants.O_RDONLY | WARILY);
  } catch (error) {
    if (['ENOENT', 'ELOOP', 'EACCES', 'ENXIO'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return null;
    throw error;
  }
  try {
    return (await isOwn(handle)) ? await handle.readFile('utf8') : null;
  } finally {
    await handle.close();
  }
}

async function isOwn(handle: FileHandle): Promise<boolean> {
  const found = await handle.stat();
  return found.isFile() && (process.geteuid === undefined || found.uid === process.geteuid());
}
