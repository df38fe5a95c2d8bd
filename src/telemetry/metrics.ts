/** What happens to runs as Prometheus counts it: a subscriber of their events, beside figures that the store is asked for at each scrape. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Backlog } from '../core/backlog.js';
import type { RunEvent, TellEvent } from '../core/event.js';

/** What is not told by events, since it is there whether anything happens or not. */
export interface StandingFigures {
  readonly backlog: Backlog;
  /** By state; absent where nobody serves. */
  readonly webhooks?: Readonly<Record<string, number>>;
}

/** Of model calls: from what a cache answers in to half an hour of reasoning. */
const CALL_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 900, 1_800];
/** From submission to answer: a backlog adds hours. */
const ANSWER_SECONDS = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400];

export class Metrics {
  readonly #registry = new Registry();
  readonly #openCalls = this.#gauge('open_calls', 'Calls that have left and are not back.', ['lane']);
  readonly #calls = this.#counter(
    'calls_total',
    'Calls by how they ended; an answer is outcome="answered".',
    ['lane', 'outcome'],
  );
  readonly #callSeconds = this.#histogram(
    'call_duration_seconds',
    'From request to whole answer.',
    CALL_SECONDS,
    ['lane'],
  );
  readonly #answerSeconds = this.#histogram(
    'time_to_answer_seconds',
    'From the submission of a served task to its committed answer.',
    ANSWER_SECONDS,
    [],
  );
  readonly #tokens = this.#counter('tokens_total', 'Tokens as servers reported them.', ['lane', 'direction']);
  readonly #costUsd = this.#counter('cost_usd_total', 'Known cost of calls in US dollars.', ['lane']);
  readonly #settled = this.#counter('tasks_settled_total', 'Tasks by what became of them.', ['outcome']);
  readonly #waitSeconds = this.#counter(
    'limiter_wait_seconds_total',
    'Seconds in which a call was ready and none could leave, by what held it.',
    ['cause'],
  );
  readonly #lanesDown = this.#gauge('lane_down', '1 while nothing that is sent over the lane is answered.', [
    'lane',
  ]);
  readonly #leasesLost = this.#counter(
    'leases_lost_total',
    'Answers and failures that came after another worker had taken their tasks over; they were not stored.',
    [],
  );
  readonly #backlog = this.#gauge('backlog_tasks', 'Open tasks.', ['state', 'priority']);
  readonly #oldestSeconds = this.#gauge(
    'oldest_pending_age_seconds',
    'Of the open task handed in first.',
    [],
  );
  readonly #webhooks = this.#gauge('webhooks', 'Webhook messages by state.', ['state']);

  /** Takes an event of any run. */
  readonly tell: TellEvent = (event: RunEvent): void => {
    switch (event.type) {
      case 'call_started':
        this.#openCalls.inc({ lane: event.lane });
        return;
      case 'call_ended':
        this.#callEnded(event);
        return;
      case 'tasks_settled':
        this.#settled.inc({ outcome: 'completed' }, event.completed.length);
        this.#settled.inc({ outcome: 'failed' }, event.failed.length);
        this.#settled.inc({ outcome: 'retried' }, event.retried.length);
        for (const timeMs of event.timesToAnswerMs) this.#answerSeconds.observe(timeMs / 1_000);
        return;
      case 'waited':
        this.#waitSeconds.inc({ cause: event.blockedBy }, event.waitMs / 1_000);
        return;
      case 'lane_down':
        this.#lanesDown.set({ lane: event.lane }, 1);
        return;
      case 'lane_up':
        this.#lanesDown.set({ lane: event.lane }, 0);
        return;
      case 'leases_lost':
        this.#leasesLost.inc(event.documents);
        return;
    }
  };

  /** @param figures asked for now */
  async render(figures: StandingFigures): Promise<{ readonly contentType: string; readonly text: string }> {
    this.#backlog.reset();
    for (const { state, priority, tasks } of figures.backlog.parts)
      this.#backlog.inc({ state, priority }, tasks);
    this.#oldestSeconds.set((figures.backlog.oldestMs ?? 0) / 1_000);
    for (const [state, count] of Object.entries(figures.webhooks ?? {})) this.#webhooks.set({ state }, count);
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  #callEnded(event: RunEvent & { readonly type: 'call_ended' }): void {
    const { lane, kind, latencyMs, usage, costMicroUsd } = event;
    this.#openCalls.dec({ lane });
    this.#calls.inc({ lane, outcome: kind ?? 'answered' });
    this.#callSeconds.observe({ lane }, latencyMs / 1_000);
    this.#costUsd.inc({ lane }, (costMicroUsd ?? 0) / 1_000_000);
    if (usage === null) return;
    this.#tokens.inc({ lane, direction: 'input' }, usage.inputTokens);
    this.#tokens.inc({ lane, direction: 'output' }, usage.outputTokens);
  }

  #counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter(this.#described(name, help, labelNames));
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label> {
    return new Gauge(this.#described(name, help, labelNames));
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    labelNames: readonly Label[],
  ): Histogram<Label> {
    return new Histogram({ ...this.#described(name, help, labelNames), buckets: [...buckets] });
  }

  #described<Label extends string>(name: string, help: string, labelNames: readonly Label[]) {
    return { name: `llm_batch_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] };
  }
}
