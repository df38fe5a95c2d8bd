/** Where traces go: to an OTLP collector, set up by OpenTelemetry's own environment variables. */
import type { Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';

export interface TraceExport {
  readonly tracer: Tracer;
  /** Hands over what has not been sent yet. */
  shutdown(): Promise<void>;
}

/** As long as a collector that does not answer holds up the end of the program. */
const SHUTDOWN_MS = 5_000;

/** The collector, the sampler and the rest are read from the environment by OpenTelemetry's own parts. */
export function startTracing(): TraceExport {
  const resource = defaultResource()
    .merge(resourceFromAttributes({ 'service.name': 'llm-batch' }))
    .merge(detectResources({ detectors: [envDetector] }));
  const provider = new BasicTracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ timeoutMillis: SHUTDOWN_MS }))],
  });
  return {
    tracer: provider.getTracer('llm-batch'),
    // A collector that is gone is no trouble of the run's.
    shutdown: () => provider.shutdown().catch(() => undefined),
  };
}
