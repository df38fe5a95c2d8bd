/**
 * The port of an endpoint: all that tells a chat completion from an embedding stands behind it, in the endpoint's own
 * folder. Pure; whatever waits, counts or is kept is the business of whoever asks.
 */
import type { Attachment } from '../core/attachment.js';
import type { FailureKind } from '../core/failure.js';
import type { Json, JsonObject } from '../core/json.js';
import type { LineProblem } from '../core/line-problem.js';
import type { CompletedResult } from '../core/outcome.js';
import type { TokenUsage } from '../core/usage.js';
import type { RenderedRequest } from './rendered-request.js';
import type { OutputFormat } from './structured-output.js';

export type { EndpointName } from '../core/endpoint-name.js';

export interface Endpoint {
  /** Where it is, below the base URL. */
  readonly path: string;
  /** What traces call it (OpenTelemetry, semantic conventions for generative AI: `gen_ai.operation.name`). */
  readonly operation: string;
  /** Used when neither line nor `--model` names one. */
  readonly defaultModel: string;
  /** The field of a body that holds what is asked. */
  readonly contentField: string;
  /** Why a request may not carry this value, wherever it was written; null when it may. */
  refusedValue(name: string, value: Json | undefined): string | null;
  /** @throws never: what cannot be sent is a value */
  createRequests(defaults: RequestDefaults): RequestMaker;
  /** The cap on the answer's tokens that a body, or the parameters for all bodies, state; null when they state none. */
  outputCapOf(body: JsonObject): number | null;
  /** What it calls that cap. */
  readonly outputCapName: string;
  /** Tokens that the server adds to those of the texts: what to expect, and what at most. */
  readonly framingTokens: { readonly expected: number; readonly most: number };
  /** Adds up a body's tokens; fields of a wrong type are passed over. */
  countTokens(body: JsonObject, tally: TokenTally): void;
  /** Tokens as the simulator bills them, for an estimate of a rehearsal. */
  countSimulatedTokens(body: JsonObject): SimulatedTokens;
  /** Requests of one group key in one body; null: each goes alone. */
  readonly grouping: Grouping | null;
  /** @param answer to a request for that many documents @returns one part for each, or what is wrong with it as a whole */
  readAnswer(answer: AnswerBody, asked: AskedFor): readonly PartReading[] | FailedReading;
  /** What the outputs of one group key have in common, a vector's length; null: nothing. */
  readonly sizeOf: ((outputJson: string) => number) | null;
  /** The body of an answer of which the store holds the output alone; null where it is none of this endpoint's. */
  bodyOf(result: CompletedResult, usage: TokenUsage | null): string | null;
  /** False where answers say nothing of tokens, for there are none to pay for. */
  readonly tellsUsage: boolean;
  readonly takesSystemMessage: boolean;
  /** Writes a file's data URL into a body that has something in its place; null: the endpoint takes no files. */
  readonly placeFile: PlaceFile | null;
  /** Parameters that ask for structured output; null: it has none. */
  readonly outputParameters: ((format: OutputFormat) => JsonObject) | null;
  /** The body that asks a server to work on it in the background, where it lies until it is fetched; null: it cannot. */
  readonly inBackground: ((bodyJson: string) => string) | null;
  /** The body of a further try, which shows the model its answer and what was wrong with it; null: it cannot. */
  readonly withMistake: ((bodyJson: string, mistake: Mistake) => string) | null;
}

export interface RequestDefaults {
  /** Null: each request has to name its own. */
  readonly model: string | null;
  /** Body fields for requests that do not say them. */
  readonly parameters: JsonObject;
}

/** Makes all requests of a run that go to one endpoint. */
export interface RequestMaker {
  /** @param systemText goes first where the request has no system message of its own */
  ofBody(body: JsonObject, systemText: string | null): RenderedRequest | LineProblem;
  /** @param content a record's text, or its texts and attachments in the template's order */
  ofRecord(content: RecordContent, systemText: string | null): RenderedRequest | LineProblem;
}

export type RecordContent = string | readonly (string | Attachment)[];

/** Adds up one request: what its parts take is known to whoever has the model's tokenizer. */
export interface TokenTally {
  /** In lower case, without vendor. */
  readonly modelName: string;
  addTokens(tokens: number): void;
  /** Whatever is no text counts nothing: the server will refuse it or ignore it. */
  addText(text: Json | undefined): void;
  /** The server renders it in a form of its own; the compact JSON is near. */
  addJson(value: Json): void;
  addImage(url: Json | undefined, detail: Json | undefined): void;
  /** A part whose tokens cannot be told from here. */
  addUncounted(): void;
  markEstimated(): void;
}

export interface SimulatedTokens {
  readonly tokens: number;
  /** False where a part is estimated. */
  readonly exact: boolean;
  readonly images: number;
}

export interface Grouping {
  readonly mostInputs: number;
  readonly mostTokens: number;
  /** @param bodies of one group key, at least two */
  join(bodies: readonly string[]): string;
}

/** What was sent, for an endpoint that has to know it to read the answer. */
export interface AskedFor {
  readonly bodyJson: string;
  /** Documents that it asks for, at least one. */
  readonly parts: number;
}

/** The body of an answer with status 2xx: an object, and no error. */
export interface AnswerBody {
  readonly body: JsonObject;
  /** Its text, as it came. */
  readonly content: string;
  /** False where bytes of it were no text and stand in `content` as U+FFFD. */
  readonly isUtf8: boolean;
  readonly usage: TokenUsage | null;
}

/** What an answer says of one document. Its words are the server's own: redacted and cut by whoever passes them on. */
export type PartReading = AnsweredReading | FailedReading;

export interface AnsweredReading {
  readonly ok: true;
  /** JSON text of what is stored as the output. */
  readonly outputJson: string;
  /** What a schema check reads: the answer's text, or its tool calls as JSON text; null where the output is no text. */
  readonly text: string | null;
  /** Empty where the endpoint knows none. */
  readonly finishReason: string;
  /**
   * JSON text of an object with what the answer holds beside its text, each as it came: `message`, `reasoning`,
   * `logprobs`, `choices`, `items`. Absent where it holds nothing but text.
   */
  readonly detailsJson?: string | undefined;
  /** The body as it came; absent where it holds other documents too, see `Endpoint.bodyOf`. */
  readonly responseJson?: string | undefined;
}

export type FailedReading =
  | {
      readonly ok: false;
      readonly kind: FailureKind;
      readonly message: string;
      /** JSON text of what there was of an answer. */
      readonly partialOutputJson?: string | undefined;
    }
  /** The server names an error of this document; whatever holds it, in any of the shapes that servers know. */
  | { readonly ok: false; readonly errorIn: JsonObject };

export type PlaceFile = (bodyJson: string, attachment: Attachment, data: string) => string;

/** An answer that was not what was asked for. */
export interface Mistake {
  readonly output: string;
  readonly problem: string;
}
