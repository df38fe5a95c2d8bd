/**
 * One call's way, for the one or more documents that it asks for:
 *
 *   admit ──▶ record ──▶ ready ──a slot is free──▶ send ──▶ settle the limits ──▶ judge each document
 *     │         │          └── may leave no more (lane silent, limit fallen, store in trouble, run stopped) ──▶ withdrawn
 *     └─────────┴── not possible ──▶ the documents go back, or fail, or go in smaller groups
 *
 * What comes before the slot takes a commit to disk; done ahead, in a small stock of ready calls, it is no part of the
 * time that the slot is taken for.
 */
import type { CallEnd } from '../core/call.js';
import type { Clock, Random } from '../core/clock.js';
import type { ProviderFailure } from '../core/failure.js';
import { errorWithoutCall, type Settlement, type TaskError } from '../core/outcome.js';
import type { RetryPolicy } from '../core/retry-decision.js';
import type { LeasedTask } from '../core/task.js';
import type { Grant } from '../limiter/limiter.js';
import type { ProviderReply, ProviderRequest } from '../provider/provider.js';
import { type BillingBounds, billedFor, mostTokensOf, NOTHING_SPENT, type RunBudget } from './billing.js';
import type { Lacking, Spending } from './budget.js';
import type { Journal } from './journal.js';
import { billOf, callEndOf, failed, judge, released } from './judge-reply.js';
import type { Gate, Lane } from './lane.js';
import { heard, type LaneChange, settleGrant } from './lane-signals.js';
import { billingOf, costOf, halvesOf, type JoinRequests, type PreparedTask } from './prepared-task.js';

export interface CallContext {
  readonly runId: number;
  readonly join: JoinRequests;
  readonly clock: Clock;
  readonly random: Random;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number;
  readonly gate: Gate;
  readonly journal: Journal;
  /** One controller per open call; aborting it cuts that call off. */
  readonly openCalls: Set<AbortController>;
  readonly isAborted: () => boolean;
  /** Whether the run is known to be in order, so that nothing but trouble means that a server is down. */
  readonly mayBeDown: () => boolean;
  /** Monotonic time since when throttling holds a task back; null when it does not. */
  readonly throttledSinceMs: (task: LeasedTask) => number | null;
  /** Null: the run has no budget. */
  readonly budget: RunBudget | null;
  /** No further call fits into the budget. */
  readonly onExhausted: (lacking: Lacking) => void;
  readonly onSent: (call: ReadyCall) => void;
  /** Before it is committed. */
  readonly onEnded: (call: ReadyCall, end: CallEnd) => void;
}

/** A call that may leave: admitted by its lane and the budget, and in the ledger. */
export interface ReadyCall {
  readonly group: readonly PreparedTask[];
  readonly request: ProviderRequest;
  readonly lane: Lane;
  readonly grant: Grant;
  /** See `Gate.isRecalled`. */
  readonly recalls: number;
  readonly callId: number;
  /** Set aside in the budget. */
  readonly most: Spending | null;
}

/** What became of a group of documents, and of the call that was made for it, if one was. */
export interface PerformedCall {
  readonly group: readonly PreparedTask[];
  readonly settlement: Settlement;
  /** At least one document was answered. */
  readonly isAnswered: boolean;
  /** Of the call, or of the first document that it did not answer; null for a good answer, or when none was made. */
  readonly failure: ProviderFailure | null;
  readonly lane: Lane | null;
  /** What the call showed of its lane's server. */
  readonly laneChange: LaneChange | null;
  /** Documents without an outcome: which of them the failure comes from shows when they go in these smaller groups. */
  readonly split: readonly (readonly PreparedTask[])[];
}

/** Takes a call as far as it can go without a slot. @returns what became of it where it cannot be made */
export async function makeReady(
  group: readonly PreparedTask[],
  context: CallContext,
): Promise<ReadyCall | PerformedCall> {
  const { budget } = context;
  const billing = billingOf(group);
  if (budget === null) return admitAndRecord(group, billing, null, context);
  const most = budget.mostOf(billing);
  const answer = await budget.admit(most);
  if (answer !== 'granted') {
    if (answer !== 'closed') context.onExhausted(answer.exhausted);
    return releasedGroup(group);
  }
  let isReady = false;
  try {
    const made = await admitAndRecord(group, billing, most, context);
    isReady = 'callId' in made;
    return made;
  } finally {
    if (!isReady) budget.settle(most, NOTHING_SPENT);
  }
}

async function admitAndRecord(
  group: readonly PreparedTask[],
  billing: BillingBounds,
  most: Spending | null,
  context: CallContext,
): Promise<ReadyCall | PerformedCall> {
  const { clock, gate, journal } = context;
  const cost = costOf(group);
  const admission = await gate.admit(cost);
  if (!admission.admitted) {
    if (!admission.impossible) return releasedGroup(group);
    if (group.length > 1) return performedWith(group, { call: null, outcomes: [] }, halvesOf(group));
    return failedGroup(group, errorWithoutCall('too_large', admission.reason), clock.now());
  }
  const { lane, grant } = admission;
  const joined = context.join(group);
  const request = typeof joined === 'function' ? await joined() : joined;
  if ('refused' in request) {
    giveBack(lane, grant, context);
    return failedGroup(group, request.refused, clock.now());
  }
  const callId = await journal.start({
    runId: context.runId,
    tasks: group.map(({ task: { taskId, attemptToken } }) => ({ taskId, attemptToken })),
    lane: lane.name,
    startedAtMs: clock.now(),
    reservedTokens: cost.tokens,
    mostTokens: mostTokensOf(billing),
    mostCostMicroUsd: lane.mostOf(
      billing.model,
      billing.mostInputTokens,
      billing.outputCap,
      billing.serviceTier,
    ),
  });
  if (callId === null) {
    giveBack(lane, grant, context);
    return releasedGroup(group);
  }
  return { group, request, lane, grant, recalls: admission.recalls, callId, most };
}

function giveBack(lane: Lane, grant: Grant, { clock, gate }: CallContext): void {
  lane.limiter.cancel(grant, clock.monotonicMs());
  gate.healthOf(lane).withdrawn(clock.monotonicMs());
  gate.poke();
}

/** A call that was ready and is not sent after all: as if it had never been. */
export function withdrawCall(ready: ReadyCall, context: CallContext): PerformedCall {
  const { group, lane, grant, callId, most } = ready;
  giveBack(lane, grant, context);
  if (most !== null) context.budget?.settle(most, NOTHING_SPENT);
  const call = { callId, isWithdrawn: true } as const;
  return performedWith(group, { call, outcomes: group.map((each) => released(each, null)) });
}

/** Sends a call that is ready, and says what became of its documents. */
export async function sendCall(ready: ReadyCall, context: CallContext): Promise<PerformedCall> {
  const { group, request, lane, grant, callId, most } = ready;
  const { clock, gate } = context;
  const { task, model, billing } = group[0] as PreparedTask;
  const sentAtMs = clock.monotonicMs();
  // A limit that has fallen since then holds for whatever has not left.
  if (!lane.limiter.sent(grant, sentAtMs)) return withdrawCall(ready, context);
  context.onSent(ready);
  let billed = NOTHING_SPENT;
  try {
    const reply = await send(request, lane, context);
    const endedAtMs = clock.monotonicMs();
    const health = gate.healthOf(lane);
    const { trouble, laneChange } = heard(health, task, reply, sentAtMs, endedAtMs, context.mayBeDown());
    const refusal = settleGrant(lane, grant, reply, health.downSinceMs !== null, endedAtMs);
    if (refusal === 'slowed' || laneChange?.type === 'down') gate.recall(lane);
    gate.poke();
    const bill = billOf(reply, model, lane);
    const finishedAtMs = clock.now();
    const judged = await judge(group, reply, bill, { trouble, refusal, lane, finishedAtMs }, context);
    for (const outcome of judged.outcomes) if (outcome.action === 'failed') health.forget(outcome.taskId);
    const end = { callId, finishedAtMs, latencyMs: endedAtMs - sentAtMs };
    const call = callEndOf(reply, judged.isAnswered ? null : judged.failure, bill, end);
    const answeredTier = ('usage' in reply ? reply.usage?.serviceTier : null) ?? null;
    if (most !== null) billed = billedFor(call, most, billing.serviceTier, answeredTier);
    context.onEnded(ready, call);
    const { outcomes, isAnswered, failure, split } = judged;
    return { group, settlement: { call, outcomes }, isAnswered, failure, lane, laneChange, split };
  } finally {
    if (most !== null) context.budget?.settle(most, billed);
  }
}

async function send(request: ProviderRequest, lane: Lane, context: CallContext): Promise<ProviderReply> {
  const controller = new AbortController();
  context.openCalls.add(controller);
  if (context.isAborted()) controller.abort();
  try {
    return await lane.provider.send(request, { timeoutMs: context.timeoutMs, signal: controller.signal });
  } finally {
    context.openCalls.delete(controller);
  }
}

/** Documents that go back, none the worse, without a call. */
export function releasedGroup(group: readonly PreparedTask[]): PerformedCall {
  return performedWith(group, { call: null, outcomes: group.map((each) => released(each, null)) });
}

function failedGroup(group: readonly PreparedTask[], error: TaskError, atMs: number): PerformedCall {
  return performedWith(group, { call: null, outcomes: group.map((each) => failed(each, null, error, atMs)) });
}

function performedWith(
  group: readonly PreparedTask[],
  settlement: Settlement,
  split: PerformedCall['split'] = [],
): PerformedCall {
  return { group, settlement, isAnswered: false, failure: null, lane: null, laneChange: null, split };
}
