/** Spans of calls, and how a task's trace is handed on. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { expect, it } from 'vitest';
import type { CalledTask } from '../../src/core/event.js';
import { startTracing } from '../../src/telemetry/otlp-exporter.js';
import { CallSpans, contextOf, traceWork } from '../../src/telemetry/traces.js';
import { callEnded, callStarted } from '../support/call-events.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`;

function recorder() {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  return { tracer: provider.getTracer('test'), spans: () => exporter.getFinishedSpans() };
}

function task(taskId: number, traceparent: string): CalledTask {
  return { taskId, line: taskId, key: `doc-${taskId}`, traceparent, submittedAtMs: 1_000 };
}

it('gives a call the trace of its task, after the time that it lay in the queue', () => {
  const { tracer, spans } = recorder();
  const { tell } = new CallSpans(tracer);
  tell(callStarted(1, [task(7, TRACEPARENT)]));
  tell(callEnded(1));
  const [queue, call] = spans();
  expect(queue).toMatchObject({ name: 'queue', kind: SpanKind.CONSUMER, startTime: [1, 0] });
  expect(call).toMatchObject({ name: 'chat small-model', kind: SpanKind.CLIENT });
  expect([queue, call].map((span) => span?.spanContext().traceId)).toEqual([TRACE, TRACE]);
  expect(call?.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'small-model',
    'gen_ai.usage.input_tokens': 10,
    'gen_ai.usage.output_tokens': 5,
    'http.response.status_code': 200,
    'llm_batch.cost_usd': 0.0015,
  });
});

it('hangs a call for several on the first trace, and links it to the others', () => {
  const { tracer, spans } = recorder();
  const { tell } = new CallSpans(tracer);
  const other = `00-${'b'.repeat(32)}-${'c'.repeat(16)}-01`;
  tell(callStarted(1, [task(7, TRACEPARENT), task(8, other)]));
  tell(callEnded(1));
  const call = spans().find(({ name }) => name === 'chat small-model');
  expect(call?.spanContext().traceId).toBe(TRACE);
  expect(call?.links.map(({ context }) => context.traceId)).toEqual(['b'.repeat(32)]);
});

it('says of a failed call what kind of failure it was', () => {
  const { tracer, spans } = recorder();
  const { tell } = new CallSpans(tracer);
  tell(callStarted(1));
  tell(callEnded(1, { kind: 'timeout', httpStatus: null, usage: null, message: 'No answer within 300 s.' }));
  const [call] = spans();
  expect(call?.attributes['error.type']).toBe('timeout');
  expect(call?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'No answer within 300 s.' });
});

it('hands a span on in a header that leads back to it', async () => {
  const { tracer } = recorder();
  const header = await traceWork(tracer, SpanKind.SERVER)('submit', TRACEPARENT, async (handed) => handed);
  expect(header).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
  expect(contextOf(header)).not.toBeNull();
});

it.each(['', 'junk', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, `00-${TRACE}-${'0'.repeat(16)}-01`])(
  'takes the header %j for none',
  (header) => expect(contextOf(header)).toBeNull(),
);

it('sends spans to the collector that the environment names, under the name it gives', async () => {
  const bodies: string[] = [];
  const collector = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => {
      body += part.toString();
    });
    request.on('end', () => {
      bodies.push(body);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((resolve) => {
    collector.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = url;
  process.env['OTEL_SERVICE_NAME'] = 'batches';
  try {
    const { tracer, shutdown } = startTracing();
    tracer.startSpan('seen').end();
    await shutdown();
  } finally {
    delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
    delete process.env['OTEL_SERVICE_NAME'];
    collector.close();
  }
  expect(bodies).toHaveLength(1);
  expect(bodies[0]).toContain('"name":"seen"');
  expect(bodies[0]).toContain('{"key":"service.name","value":{"stringValue":"batches"}}');
});
