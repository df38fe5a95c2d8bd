/** The port to one kind of call: the pipeline of judge.ts is the same for all, the words are the endpoint's. */
import type { JsonObject } from '../core/json.js';
import type { SimulatorSettings } from './options.js';
import type { Refusal } from './refusal.js';

/** In what way an answer is good or not, whatever the endpoint calls it. */
export type AnswerVariant =
  | 'whole'
  | 'half'
  | 'filtered'
  | 'refused'
  | 'without_choices'
  | 'without_content'
  | 'without_usage'
  | 'with_nul'
  | 'with_lone_surrogate'
  /** Of several inputs. */
  | 'shuffled'
  | 'index_missing'
  | 'index_unknown'
  | 'index_doubled'
  | 'item_error';

/** What makes one answer's envelope differ from another's. */
export interface AnswerStamp {
  readonly callNumber: number;
  /** Seconds since the epoch. */
  readonly createdSeconds: number;
}

/** A valid request, understood. */
export interface Inquiry {
  /** Identifies the document: 12 hexadecimal digits. */
  readonly fingerprint: string;
  /** The other documents of the same call. */
  readonly companions: readonly string[];
  /** As requested. */
  readonly model: string;
  /** Where directives may stand. */
  readonly userTexts: readonly string[];
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** The request's own cap on its answer in tokens; null without one. */
  readonly outputCapTokens: number | null;
  /** Dollars, where the simulator has prices. */
  readonly costUsd: number | null;
  /** Its answer is not waited for. */
  readonly isBackground?: true;
  /** The answer's body. */
  render(variant: AnswerVariant, stamp: AnswerStamp): JsonObject;
}

export interface Endpoint {
  /** Below the origin, e.g. `/v1/chat/completions`; the method is POST. */
  readonly path: string;
  /** Understands a request or says what is wrong with it. */
  read(requestBody: JsonObject, settings: SimulatorSettings): Inquiry | Refusal;
}
