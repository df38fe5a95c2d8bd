/**
 * Traces in OpenTelemetry's terms. One task's trace goes from its submission over HTTP, through the queue and its calls, to its webhook:
 * its context is kept with the task (W3C Trace Context), so that whichever process works on it goes on with the same trace.
 * Names and attributes are those of the semantic conventions for generative AI, which are in development and may change.
 */
import {
  type Context,
  type Link,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { CalledTask, RunEvent, TellEvent } from '../core/event.js';
import { TRACEPARENT, type TraceWork } from '../core/trace-work.js';

/** @returns null for a header that says no context */
export function contextOf(traceparent: string | null | undefined): Context | null {
  const match = TRACEPARENT.exec(traceparent ?? '');
  const [, traceId, spanId, flags] = match ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  const spanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
  };
  if (!trace.isSpanContextValid(spanContext)) return null;
  return trace.setSpanContext(ROOT_CONTEXT, spanContext);
}

/** @returns the header that hands the span's context on; null where nothing is traced */
function traceparentOf(span: Span): string | null {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if (!trace.isSpanContextValid(span.spanContext())) return null;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/**
 * Spans of the calls of runs, from their events. A call for several documents hangs on the first one's trace and is linked
 * to the others'; one for documents of a run that was handed in whole is a trace of its own, linked to the run's: nobody
 * could look at a trace of a million calls.
 */
export class CallSpans {
  readonly #tracer: Tracer;
  readonly #open = new Map<number, Span>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  readonly tell: TellEvent = (event: RunEvent): void => {
    if (event.type === 'call_started') this.#started(event);
    else if (event.type === 'call_ended') this.#ended(event);
  };

  #started(event: RunEvent & { readonly type: 'call_started' }): void {
    const { callId, lane, model, operation, tasks, runTraceparent } = event;
    const [first] = tasks;
    const parent = contextOf(first?.traceparent) ?? ROOT_CONTEXT;
    for (const task of tasks) this.#queued(task);
    const span = this.#tracer.startSpan(
      `${operation} ${model}`,
      {
        kind: SpanKind.CLIENT,
        links: [...tasks.slice(1).map(({ traceparent }) => traceparent), runTraceparent].flatMap(linkTo),
        attributes: {
          'gen_ai.operation.name': operation,
          'gen_ai.provider.name': 'openai',
          'gen_ai.request.model': model,
          'llm_batch.lane': lane,
          'llm_batch.call.id': callId,
          'llm_batch.task.ids': tasks.map(({ taskId }) => taskId),
        },
      },
      parent,
    );
    this.#open.set(callId, span);
  }

  /** From its submission to now; a task that is tried again has been in the queue once more. */
  #queued({ taskId, traceparent, submittedAtMs }: CalledTask): void {
    const parent = contextOf(traceparent);
    if (parent === null || submittedAtMs === undefined) return;
    this.#tracer
      .startSpan(
        'queue',
        {
          kind: SpanKind.CONSUMER,
          startTime: new Date(submittedAtMs),
          attributes: { 'llm_batch.task.ids': [taskId] },
        },
        parent,
      )
      .end();
  }

  #ended(event: RunEvent & { readonly type: 'call_ended' }): void {
    const { callId, kind, httpStatus, usage, costMicroUsd, requestId, message } = event;
    const span = this.#open.get(callId);
    this.#open.delete(callId);
    if (span === undefined) return;
    if (httpStatus !== null) span.setAttribute('http.response.status_code', httpStatus);
    if (requestId !== null) span.setAttribute('gen_ai.response.id', requestId);
    if (costMicroUsd !== null) span.setAttribute('llm_batch.cost_usd', costMicroUsd / 1_000_000);
    if (usage !== null) {
      span.setAttribute('gen_ai.usage.input_tokens', usage.inputTokens);
      span.setAttribute('gen_ai.usage.output_tokens', usage.outputTokens);
    }
    if (kind !== null) {
      span.setAttribute('error.type', kind);
      span.setStatus({ code: SpanStatusCode.ERROR, ...(message === null ? {} : { message }) });
    }
    span.end();
  }
}

function linkTo(traceparent: string | null | undefined): Link[] {
  const spanContext = trace.getSpanContext(contextOf(traceparent) ?? ROOT_CONTEXT);
  return spanContext === undefined ? [] : [{ context: spanContext }];
}

/** Steps of one kind that are done within the traces that they belong to; a rejection is the error of its step. */
export function traceWork(tracer: Tracer, kind: SpanKind): TraceWork {
  return async (name, traceparent, work) => {
    const span = tracer.startSpan(name, { kind }, contextOf(traceparent) ?? ROOT_CONTEXT);
    try {
      return await work(traceparentOf(span));
    } catch (error) {
      span.setStatus({
        code: SpanStatusCode.ERROR,
        message: error instanceof Error ? error.message : String(error),
      });
      throw error;
    } finally {
      span.end();
    }
  };
}
