/** What a process that sends or serves tells of itself to other programs: metrics where they are asked for, traces where the environment names a collector. */
import type { TellEvent } from '../core/event.js';
import { Metrics } from '../telemetry/metrics.js';
import { startTracing, type Tracing } from '../telemetry/otlp-exporter.js';
import { CallSpans } from '../telemetry/traces.js';

export interface Telemetry {
  readonly metrics: Metrics;
  readonly tracing: Tracing;
  /** Takes an event of any run. */
  readonly tell: TellEvent;
}

export async function startTelemetry(environment: NodeJS.ProcessEnv): Promise<Telemetry> {
  const metrics = new Metrics();
  const tracing = await startTracing(environment);
  const { tell } = new CallSpans(tracing.tracer);
  return {
    metrics,
    tracing,
    tell(event) {
      metrics.tell(event);
      tell(event);
    },
  };
}
