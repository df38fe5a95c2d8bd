/** Where traces go: to an OTLP collector, set up by OpenTelemetry's own environment variables; nowhere without them. */
import { type Tracer, trace } from '@opentelemetry/api';

export interface Tracing {
  readonly tracer: Tracer;
  /** Hands over what has not been sent yet. */
  shutdown(): Promise<void>;
}

/** As long as a collector that does not answer holds up the end of the program. */
const SHUTDOWN_MS = 5_000;

/**
 * @param environment OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT switches traces on,
 *   OTEL_TRACES_EXPORTER=none or OTEL_SDK_DISABLED=true off; the others are read by the SDK (OpenTelemetry's specification,
 *   "Environment Variable Specification")
 */
export async function startTracing(environment: NodeJS.ProcessEnv): Promise<Tracing> {
  const none = { tracer: trace.getTracer('llm-batch'), shutdown: async () => undefined };
  if (!isWanted(environment)) return none;
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
  const { BasicTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base');
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = await import(
    '@opentelemetry/resources'
  );
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

function isWanted(environment: NodeJS.ProcessEnv): boolean {
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return false;
  if (environment['OTEL_TRACES_EXPORTER'] === 'none') return false;
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = environment;
  return (all ?? '') !== '' || (traces ?? '') !== '';
}
