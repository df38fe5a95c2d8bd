/**
 * What a process that sends or serves tells of itself to other programs: figures for Prometheus, and traces where the
 * environment names a collector. Its libraries are loaded where one of the two is wanted.
 */
import type { TellEvent } from '../core/event.js';
import type { TraceWork } from '../core/trace-work.js';
import type { Store } from '../store/store.js';
import type { CommandContext } from './context.js';

export interface Tracing {
  /** Takes an event of any run. */
  readonly tell: TellEvent;
  /** For what others ask of this process, and for what it asks of others. */
  readonly asked: TraceWork;
  readonly asking: TraceWork;
  /** Hands over what has not been sent yet. */
  close(): Promise<void>;
}

const UNTRACED: Tracing = {
  tell: () => undefined,
  asked: (_name, traceparent, work) => work(traceparent),
  asking: (_name, traceparent, work) => work(traceparent),
  close: () => Promise.resolve(),
};

export async function traceRuns({ environment }: CommandContext): Promise<Tracing> {
  if (!namesCollector(environment)) return UNTRACED;
  const { SpanKind } = await import('@opentelemetry/api');
  const { startTracing } = await import('../telemetry/otlp-exporter.js');
  const { CallSpans, traceWork } = await import('../telemetry/traces.js');
  const { tracer, shutdown } = startTracing();
  return {
    tell: new CallSpans(tracer).tell,
    asked: traceWork(tracer, SpanKind.SERVER),
    asking: traceWork(tracer, SpanKind.CLIENT),
    close: shutdown,
  };
}

/** And does not switch traces off (OpenTelemetry's specification, "Environment Variable Specification"). */
function namesCollector(environment: CommandContext['environment']): boolean {
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return false;
  if (environment['OTEL_TRACES_EXPORTER'] === 'none') return false;
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = environment;
  return (all ?? '') !== '' || (traces ?? '') !== '';
}

/** @param store that the backlog is of @param serves whether webhooks are sent from it */
export async function measureRuns(store: Store, serves: boolean) {
  const { Metrics } = await import('../telemetry/metrics.js');
  const metrics = new Metrics();
  return {
    tell: metrics.tell,
    render: async () =>
      metrics.render({
        backlog: await store.readBacklog(),
        ...(serves && { webhooks: await store.served.countWebhooks() }),
      }),
  };
}
