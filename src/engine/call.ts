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
import type { OpenResponse, RemoteResponses, ResponseReply } from '../provider/remote-responses.js';
import type { BackgroundCalls, LeftResponse, PlacedResponse } from './background-calls.js';
import { type BillingBounds, billedFor, mostTokensOf, NOTHING_SPENT, type RunBudget } from './billing.js';
import type { Lacking, Spending } from './budget.js';
import type { Journal } from './journal.js';
import { billOf, callEndOf, failed, judge, type ReplyCircumstances, released } from './judge-reply.js';
import type { Gate, Lane } from './lane.js';
import { heard, type LaneChange, settleGrant } from './lane-signals.js';
import type { OpenCalls } from './open-calls.js';
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
  readonly openCalls: OpenCalls;
  /** Whether the run is known to be in order, so that nothing but trouble means that a server is down. */
  readonly mayBeDown: () => boolean;
  /** Monotonic time since when throttling holds a task back; null when it does not. */
  readonly throttledSinceMs: (task: LeasedTask) => number | null;
  readonly background: BackgroundCalls;
  /** A server has taken a call to work on: what that shows of its lane. */
  readonly onAccepted: (group: readonly PreparedTask[], lane: Lane, laneChange: LaneChange | null) => void;
  /** Null: the run has no budget. */
  readonly budget: RunBudget | null;
  /** No further call fits into the budget. */
  readonly onExhausted: (lacking: Lacking) => void;
  readonly onSent: (call: SentCall) => void;
  /** Before it is committed. */
  readonly onEnded: (call: SentCall, end: CallEnd) => void;
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
  /** When it went to the ledger, monotonic. */
  readonly recordedAtMs: number;
  /** Set aside in the budget. */
  readonly most: Spending | null;
}

/** A call that has left, or had in an earlier process. */
export type SentCall = Pick<ReadyCall, 'group' | 'request' | 'lane' | 'callId' | 'most'>;

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
  /** Where the answer was, and is to be removed once what it says is stored; null: it came with the call. */
  readonly response: OpenedResponse | null;
  /** Not null: no outcome yet, for the server goes on with it. */
  readonly left: LeftResponse | null;
}

export interface OpenedResponse extends PlacedResponse {
  /** The store's number for it. */
  readonly batchId: number;
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
  const recordedAtMs = clock.monotonicMs();
  const callId = await journal.start({
    runId: context.runId,
    tasks: group.map(({ task: { taskId, attemptToken } }) => ({ taskId, attemptToken })),
    lane: lane.name,
    startedAtMs: clock.now(),
    reservedTokens: cost.tokens,
    mostTokens: mostTokensOf(billing),
    mostCostMicroUsd: mostCostOf(lane, billing),
  });
  if (callId === null) {
    giveBack(lane, grant, context);
    return releasedGroup(group);
  }
  return { group, request, lane, grant, recalls: admission.recalls, callId, recordedAtMs, most };
}

function mostCostOf(lane: Lane, billing: BillingBounds): number | null {
  const { model, mostInputTokens, outputCap, serviceTier } = billing;
  return lane.mostOf(model, mostInputTokens, outputCap, serviceTier);
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
  const { group, request, lane, grant } = ready;
  const { clock, gate } = context;
  const { task } = group[0] as PreparedTask;
  const sentAtMs = clock.monotonicMs();
  // A limit that has fallen since then holds for whatever has not left.
  if (!lane.limiter.sent(grant, sentAtMs)) return withdrawCall(ready, context);
  context.onSent(ready);
  return withinBudget(ready, context, async () => {
    const reply = await send(request, lane, context);
    const endedAtMs = clock.monotonicMs();
    const health = gate.healthOf(lane);
    const { trouble, laneChange } = heard(health, task, reply, sentAtMs, endedAtMs, context.mayBeDown());
    const refusal = settleGrant(lane, grant, reply, health.downSinceMs !== null, endedAtMs);
    if (refusal === 'slowed' || laneChange?.type === 'down') gate.recall(lane);
    gate.poke();
    if ('isOpen' in reply) {
      context.onAccepted(group, lane, laneChange);
      return takeResponse(ready, reply, sentAtMs, context);
    }
    const latencyMs = endedAtMs - sentAtMs;
    return conclude(ready, reply, { trouble, refusal, laneChange, latencyMs }, context);
  });
}

/** A call whose answer is at a server, or will be. */
export interface OpenCall extends SentCall {
  readonly startedAtMs: number;
  readonly response: OpenedResponse;
}

/** Fetches the answer to a call that an earlier process has made. */
export function fetchCall(call: OpenCall, context: CallContext): Promise<PerformedCall> {
  const latencyMs = (): number => Math.max(0, context.clock.now() - call.startedAtMs);
  context.onSent(call);
  return withinBudget(call, context, () => fetchResponse(call, true, latencyMs, context));
}

/** From here on the task is the response's: its id is on disk before anybody asks for it. */
async function takeResponse(
  ready: ReadyCall,
  { id: remoteId }: OpenResponse,
  sentAtMs: number,
  context: CallContext,
): Promise<ConcludedCall> {
  const { group, request, lane, callId, most } = ready;
  const { clock, journal, runId } = context;
  const { task, model, billing } = group[0] as PreparedTask;
  const startedAtMs = clock.now();
  const placed = { responses: lane.responses as RemoteResponses, remoteId };
  const batchId = await journal.taken({
    ...{ callId, task, remoteId },
    batch: {
      ...{ runId, kind: 'response', lane: lane.name, endpoint: request.endpoint, model },
      createdAtMs: startedAtMs,
    },
    mostTokens: mostTokensOf(billing),
    mostCostMicroUsd: mostCostOf(lane, billing),
  });
  if (batchId === null) {
    // Whoever has the document now asks for it anew.
    context.background.remove(placed);
    return { performed: releasedGroup(group), billed: most ?? NOTHING_SPENT };
  }
  const open = { group, request, lane, callId, most, startedAtMs, response: { ...placed, batchId } };
  return fetchResponse(open, false, () => clock.monotonicMs() - sentAtMs, context);
}

async function fetchResponse(
  open: OpenCall,
  isOld: boolean,
  latencyMs: () => number,
  context: CallContext,
): Promise<ConcludedCall> {
  const { group, request, lane, response } = open;
  const reply = await context.background.answerOf(response, request, isOld);
  if ('isLeft' in reply) {
    const left = performedWith(group, { call: null, outcomes: [] });
    return { performed: { ...left, lane, left: reply }, billed: NOTHING_SPENT };
  }
  // The lane was heard when it took the call: what comes of that is no sign of outages or limits, and each failure is
  // an attempt.
  const ending = { trouble: null, refusal: 'stray', laneChange: null, latencyMs: latencyMs() } as const;
  const concluded = await conclude(open, reply, ending, context);
  return { ...concluded, performed: { ...concluded.performed, response } };
}

interface ConcludedCall {
  readonly performed: PerformedCall;
  readonly billed: Spending;
}

async function withinBudget(
  { most }: Pick<ReadyCall, 'most'>,
  { budget }: CallContext,
  work: () => Promise<ConcludedCall>,
): Promise<PerformedCall> {
  let spent = NOTHING_SPENT;
  try {
    const { performed, billed } = await work();
    spent = billed;
    return performed;
  } finally {
    if (most !== null) budget?.settle(most, spent);
  }
}

async function conclude(
  sent: SentCall,
  reply: ProviderReply,
  {
    trouble,
    refusal,
    laneChange,
    latencyMs,
  }: Pick<ReplyCircumstances, 'trouble' | 'refusal'> & {
    readonly laneChange: LaneChange | null;
    readonly latencyMs: number;
  },
  context: CallContext,
): Promise<ConcludedCall> {
  const { group, lane, callId, most } = sent;
  const { model, billing } = group[0] as PreparedTask;
  const bill = billOf(reply, model, lane);
  const finishedAtMs = context.clock.now();
  const judged = await judge(group, reply, bill, { trouble, refusal, lane, finishedAtMs }, context);
  const health = context.gate.healthOf(lane);
  for (const outcome of judged.outcomes) if (outcome.action === 'failed') health.forget(outcome.taskId);
  const { outcomes, isAnswered, failure, split } = judged;
  const call = callEndOf(reply, isAnswered ? null : failure, bill, { callId, finishedAtMs, latencyMs });
  const answeredTier = ('usage' in reply ? reply.usage?.serviceTier : null) ?? null;
  const billed = most === null ? NOTHING_SPENT : billedFor(call, most, billing.serviceTier, answeredTier);
  context.onEnded(sent, call);
  const performed = performedWith(group, { call, outcomes }, split, {
    isAnswered,
    failure,
    lane,
    laneChange,
  });
  return { performed, billed };
}

async function send(request: ProviderRequest, lane: Lane, context: CallContext): Promise<ResponseReply> {
  const signal = context.openCalls.begin();
  const options = { timeoutMs: context.timeoutMs, signal };
  try {
    return context.background.task === 'send' && lane.responses !== undefined
      ? await lane.responses.create(request, options)
      : await lane.provider.send(request, options);
  } finally {
    context.openCalls.end(signal);
  }
}

/** Documents that go back, none the worse, without a call. */
export function releasedGroup(group: readonly PreparedTask[]): PerformedCall {
  return performedWith(group, { call: null, outcomes: group.map((each) => released(each, null)) });
}

function failedGroup(group: readonly PreparedTask[], error: TaskError, atMs: number): PerformedCall {
  return performedWith(group, { call: null, outcomes: group.map((each) => failed(each, null, error, atMs)) });
}

/** What a server said to a call. */
type Heard = Pick<PerformedCall, 'isAnswered' | 'failure' | 'lane' | 'laneChange'>;

const NOTHING_HEARD: Heard = { isAnswered: false, failure: null, lane: null, laneChange: null };

/** Written out, since it is made for each call: to spread the parts takes several times as long. */
function performedWith(
  group: readonly PreparedTask[],
  settlement: Settlement,
  split: PerformedCall['split'] = [],
  { isAnswered, failure, lane, laneChange }: Heard = NOTHING_HEARD,
): PerformedCall {
  return { group, settlement, split, isAnswered, failure, lane, laneChange, response: null, left: null };
}
