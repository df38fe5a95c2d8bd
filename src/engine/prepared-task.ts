/** Documents as requests, each ready to be sent alone or packed with others into one call. */
import type { TaskError } from '../core/outcome.js';
import type { LeasedTask } from '../core/task.js';
import type { TokenUsage } from '../core/usage.js';
import type { Grouping } from '../endpoints/endpoint.js';
import type { DocumentRequest } from '../endpoints/rendered-request.js';
import type { Cost } from '../limiter/limiter.js';
import type { ProviderRequest } from '../provider/provider.js';
import type { BillingBounds } from './billing.js';

/** One document's request. */
export interface PreparedTask {
  readonly task: LeasedTask;
  /** Null: it goes alone. */
  readonly grouping: TaskGrouping | null;
  /** For `JoinRequests`; the engine does not look into it. */
  readonly request: DocumentRequest;
  /** The model asked for, where a server does not say which one answered. */
  readonly model: string;
  /** The document names it, and not the run: where no server knows it, that is this document's own mistake. */
  readonly namesModel?: boolean;
  /** What it charges the limits when it is sent alone, by what the answers so far have shown. */
  readonly cost: () => Cost;
  /** Bounds of its bill when it is sent alone. */
  readonly billing: BillingBounds;
  /** Whether an answer is what was asked for; null: any is. */
  readonly checkOutput: CheckOutput | null;
  /** Told what it really used, so that later estimates follow it. */
  readonly learn: (usage: TokenUsage) => void;
}

/** With whom a document may share a call. */
export interface TaskGrouping {
  /** Those of one key may. */
  readonly key: string;
  /** Entries that it takes in the call's array of inputs. */
  readonly inputs: number;
  /** Of one call. */
  readonly bounds: Pick<Grouping, 'mostInputs' | 'mostTokens'>;
}

/** Renders a stored document as a request; a document that cannot be rendered any more is an error value. */
export type PrepareTask = (task: LeasedTask) => PreparedTask | { readonly refused: TaskError };

/**
 * Makes one request of documents of one group key, or of a single one. A function where the body is large: called once
 * the call is admitted, so that nobody holds it while waiting.
 */
export type JoinRequests = (prepared: readonly PreparedTask[]) => ProviderRequest | LoadRequest;

/** Makes the request, or says what has come between since it was prepared. Never rejects for that. */
export type LoadRequest = () => Promise<ProviderRequest | { readonly refused: TaskError }>;

/** Reads an answer's text, or the JSON text of an output that is none. @returns what is stored of it as JSON text, or what is wrong with it, in words that may be foreign */
export type CheckOutput = (
  output: string,
) => Promise<{ readonly outputJson: string } | { readonly problem: string }>;

/** The model at its endpoint: what says how long a call takes, and what may go in one batch. */
export function kindOf({ request, model }: PreparedTask): string {
  return `${request.endpoint} ${model}`;
}

/** What a call for these documents charges the limits. */
export function costOf(prepared: readonly PreparedTask[]): Cost {
  const costs = prepared.map(({ cost }) => cost());
  return {
    requests: 1,
    tokens: costs.reduce((sum, { tokens }) => sum + tokens, 0),
    tokensAtCap: costs.reduce((sum, { tokens, tokensAtCap = tokens }) => sum + tokensAtCap, 0),
  };
}

/** Bounds of the bill of a call for these documents, which are of one model and tier. */
export function billingOf(prepared: readonly PreparedTask[]): BillingBounds {
  const [first] = prepared;
  if (first === undefined) throw new TypeError('A call has at least one document.');
  const isCapped = prepared.every(({ billing }) => billing.outputCap !== null);
  return {
    ...first.billing,
    mostInputTokens: sumOf(prepared, ({ billing }) => billing.mostInputTokens),
    outputCap: isCapped ? sumOf(prepared, ({ billing }) => billing.outputCap ?? 0) : null,
  };
}

/** The two smaller groups that a group goes in when it fails. */
export function halvesOf(prepared: readonly PreparedTask[]): readonly (readonly PreparedTask[])[] {
  const middle = Math.ceil(prepared.length / 2);
  return [prepared.slice(0, middle), prepared.slice(middle)];
}

function sumOf(prepared: readonly PreparedTask[], amount: (each: PreparedTask) => number): number {
  return prepared.reduce((sum, each) => sum + amount(each), 0);
}
