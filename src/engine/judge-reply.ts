/** What an ended call means for each of its documents. */
import type { CallEnd, CallShare } from '../core/call.js';
import type { Clock, Random } from '../core/clock.js';
import type { ProviderFailure } from '../core/failure.js';
import { shortLine } from '../core/foreign-text.js';
import type { TaskError, TaskOutcome } from '../core/outcome.js';
import {
  type AttemptHistory,
  decideRetry,
  isTrouble,
  type RetryDecision,
  type RetryPolicy,
} from '../core/retry-decision.js';
import { shareBill } from '../core/share.js';
import type { LeasedTask } from '../core/task.js';
import { type BilledUsage, NO_TOKENS } from '../core/usage.js';
import type { RefusalEffect } from '../limiter/limiter.js';
import type { AnswerPart, ProviderReply } from '../provider/provider.js';
import type { Lane } from './lane.js';
import { halvesOf, type PreparedTask } from './prepared-task.js';

/** What a call used and cost, as far as that is known. */
export interface Bill {
  readonly usage: BilledUsage | null;
  readonly costMicroUsd: number | null;
}

export interface Judged {
  /** One for each document; none where they are split. */
  readonly outcomes: readonly TaskOutcome[];
  readonly isAnswered: boolean;
  readonly failure: ProviderFailure | null;
  readonly split: readonly (readonly PreparedTask[])[];
}

export interface ReplyCircumstances {
  /** What the lane's other calls say of a failure. */
  readonly trouble: AttemptHistory['trouble'];
  /** What a refusal did to the lane. */
  readonly refusal: RefusalEffect | null;
  readonly lane: Lane;
  readonly finishedAtMs: number;
}

export interface Judging {
  readonly clock: Clock;
  /** Monotonic time since when throttling holds a task back; null when it does not. */
  readonly throttledSinceMs: (task: LeasedTask) => number | null;
  readonly retry: RetryPolicy;
  readonly random: Random;
}

/** As long as other failures' messages are at most. */
const LONGEST_PROBLEM = 500;
/** A refused call whose lane goes on comes back after this at the least. */
const STRAY_WAIT_MS = 1_000;

/**
 * Judges each document of a call. A failure of a call for several says nothing of any one of them, so it uses no attempt:
 * they go again in halves, until the one that it comes from is alone.
 */
export async function judge(
  group: readonly PreparedTask[],
  reply: ProviderReply,
  bill: Bill,
  circumstances: ReplyCircumstances,
  context: Judging,
): Promise<Judged> {
  const { usage, costMicroUsd } = bill;
  const estimates = group.map(({ cost }) => cost().tokens);
  const told = 'usages' in reply ? reply.usages : undefined;
  const shares = shareBill(usage, costMicroUsd, estimates, told);
  const shareOf = (index: number): CallShare => shares[index] as CallShare;
  if ('aborted' in reply) {
    const outcomes = group.map((each, index) => released(each, shareOf(index)));
    return { outcomes, isAnswered: false, failure: null, split: [] };
  }
  for (const [index, { learn }] of group.entries()) {
    const share = shareOf(index).usage;
    if (share !== null) learn(share);
  }
  if (reply.ok) return judgeAnswer(group, reply, shares, circumstances, context);

  const failure = ofDocument(reply.failure, group);
  const decisions = group.map(({ task }) => decide(task, failure, circumstances, context));
  const isCharged = decisions.some(({ action }) => action === 'retry' || action === 'fail');
  if (isCharged && group.length > 1)
    return { outcomes: [], isAnswered: false, failure, split: halvesOf(group) };
  const outcomes = group.map((each, index) =>
    outcomeOf(each, shareOf(index), failure, decisions[index] as RetryDecision, circumstances),
  );
  return { outcomes, isAnswered: false, failure, split: [] };
}

/** What tells a model that a server does not know from an address where there is none. */
const UNKNOWN_MODEL = /model|deployment/i;

/** That a document names a model that nobody knows must not stop the run, at every `resume` anew. */
function ofDocument(failure: ProviderFailure, group: readonly PreparedTask[]): ProviderFailure {
  const isOwn = failure.kind === 'not_found' && group.every(({ namesModel }) => namesModel === true);
  return isOwn && UNKNOWN_MODEL.test(failure.code ?? '') ? { ...failure, kind: 'invalid_request' } : failure;
}

async function judgeAnswer(
  group: readonly PreparedTask[],
  answer: Extract<ProviderReply, { ok: true }>,
  shares: readonly CallShare[],
  circumstances: ReplyCircumstances,
  context: Judging,
): Promise<Judged> {
  let firstFailure: ProviderFailure | null = null;
  const outcomes: TaskOutcome[] = [];
  let isAnswered = false;
  for (const [index, each] of group.entries()) {
    const share = shares[index] as CallShare;
    const part = await checkPart(answer.parts[index] as AnswerPart, answer, each, circumstances.lane);
    if (part.ok) {
      isAnswered = true;
      const { outputJson, finishReason, detailsJson, responseJson } = part;
      const model = answer.model === '' ? each.model : answer.model;
      outcomes.push({
        action: 'completed',
        ...leaseOf(each),
        share,
        atMs: circumstances.finishedAtMs,
        result: { outputJson, model, finishReason, detailsJson, responseJson },
      });
    } else {
      firstFailure ??= part.failure;
      const decision = decide(each.task, part.failure, circumstances, context);
      outcomes.push(outcomeOf(each, share, part.failure, decision, circumstances));
    }
  }
  return { outcomes, isAnswered, failure: firstFailure, split: [] };
}

/** An answer that is not what was asked for was billed all the same, and is a failure from here on. */
async function checkPart(
  part: AnswerPart,
  { httpStatus, requestId }: Extract<ProviderReply, { ok: true }>,
  { checkOutput }: PreparedTask,
  { provider }: Lane,
): Promise<AnswerPart> {
  if (!part.ok || checkOutput === null) return part;
  // Whatever an answer brings its check to, it is the answer's fault: the run goes on.
  const checked = await checkOutput(part.text ?? part.outputJson).catch((error: unknown) => ({
    problem: `The answer could not be checked: ${String(error)}`,
  }));
  if ('outputJson' in checked) return { ...part, ...checked };
  return {
    ok: false,
    failure: {
      kind: 'bad_output',
      message: shortLine(provider.redact?.(checked.problem) ?? checked.problem, LONGEST_PROBLEM),
      httpStatus,
      partialOutputJson: part.outputJson,
      ...(requestId === null ? {} : { requestId }),
    },
  };
}

function decide(
  task: LeasedTask,
  failure: ProviderFailure,
  { trouble }: ReplyCircumstances,
  { retry, clock, random, throttledSinceMs }: Judging,
): RetryDecision {
  const history = { attempts: task.attempts, throttledSinceMs: throttledSinceMs(task), trouble };
  const policy = task.maxAttempts === undefined ? retry : { ...retry, maxAttempts: task.maxAttempts };
  return decideRetry(failure, history, policy, clock.monotonicMs(), random);
}

function outcomeOf(
  prepared: PreparedTask,
  share: CallShare,
  failure: ProviderFailure,
  decision: RetryDecision,
  { refusal, finishedAtMs }: ReplyCircumstances,
): TaskOutcome {
  switch (decision.action) {
    case 'halt':
      return released(prepared, share);
    case 'release':
      return {
        ...released(prepared, share),
        isThrottled: true,
        delayMs: releasedForMs(decision.delayMs, refusal, isTrouble(failure.kind)),
      };
    case 'fail':
      return failed(prepared, share, taskError(failure), finishedAtMs);
    case 'retry':
      return {
        action: 'retry',
        ...leaseOf(prepared),
        share,
        error: taskError(failure),
        delayMs: decision.delayMs,
      };
  }
}

/** A lane that slowed down holds the task back by itself; one that did not leaves the waiting to the task. */
function releasedForMs(delayMs: number, refusal: RefusalEffect | null, isTroubled: boolean): number | null {
  if (isTroubled) return delayMs;
  return refusal === 'stray' ? Math.max(STRAY_WAIT_MS, delayMs) : null;
}

function leaseOf({ task: { taskId, attemptToken } }: Pick<PreparedTask, 'task'>): {
  taskId: number;
  attemptToken: string;
} {
  return { taskId, attemptToken };
}

/** The document goes back unharmed: no attempt used. The lane's pause, not the document, makes it wait. */
export function released(
  prepared: Pick<PreparedTask, 'task'>,
  share: CallShare | null,
): Extract<TaskOutcome, { action: 'released' }> {
  return { action: 'released', ...leaseOf(prepared), share, delayMs: null, isThrottled: false };
}

export function failed(
  prepared: Pick<PreparedTask, 'task'>,
  share: CallShare | null,
  error: TaskError,
  atMs: number,
): TaskOutcome {
  return { action: 'failed', ...leaseOf(prepared), share, error, atMs };
}

/** @param model the one asked for */
export function billOf(reply: ProviderReply, model: string, lane: Lane): Bill {
  const isUnsent = 'aborted' in reply ? reply.isUnsent : !reply.ok && reply.failure.isUnsent;
  if (isUnsent) return { usage: NO_TOKENS, costMicroUsd: 0 };
  if ('aborted' in reply) return { usage: null, costMicroUsd: null };
  const { usage } = reply;
  // What the server itself says of the cost is nearer the bill than any table.
  return { usage, costMicroUsd: reply.costMicroUsd ?? (usage === null ? null : lane.costOf(model, usage)) };
}

/** @param failure null: at least one document was answered */
export function callEndOf(
  reply: ProviderReply,
  failure: ProviderFailure | null,
  bill: Bill,
  end: Pick<CallEnd, 'callId' | 'finishedAtMs' | 'latencyMs'>,
): CallEnd {
  const answer = reply.ok ? reply : null;
  return {
    ...end,
    usage: bill.usage,
    costMicroUsd: bill.costMicroUsd,
    httpStatus: failure?.httpStatus ?? answer?.httpStatus ?? null,
    kind: 'aborted' in reply ? 'aborted' : (failure?.kind ?? null),
    message: failure?.message ?? null,
    requestId: failure?.requestId ?? answer?.requestId ?? null,
  };
}

function taskError(failure: ProviderFailure): TaskError {
  return {
    kind: failure.kind,
    message: failure.message,
    httpStatus: failure.httpStatus ?? null,
    code: failure.code ?? null,
    requestId: failure.requestId ?? null,
    partialOutputJson: failure.partialOutputJson ?? null,
  };
}
