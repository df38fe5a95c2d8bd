/** A request whose body is known: all that is asked of it follows from that, in its endpoint's way. */
import type { Attachment } from '../core/attachment.js';
import { digest } from '../core/digest.js';
import type { EndpointName } from '../core/endpoint-name.js';
import { canonicalText, orderedText } from '../core/exact-json.js';
import type { JsonObject } from '../core/json.js';
import { type RenderedRequest, serviceTierOf } from './rendered-request.js';

/** What an endpoint's bodies are like. */
export interface RequestShape {
  readonly endpoint: EndpointName;
  /** The field of a body that holds what is asked. */
  readonly contentField: string;
  /** As `Endpoint.outputCapOf`. */
  readonly outputCapOf: (body: JsonObject) => number | null;
  /** As `RenderedRequest.inputText`. */
  readonly textOf: (body: JsonObject) => string;
  readonly attachmentsIn: (body: JsonObject) => readonly Attachment[];
  readonly inputsOf: (body: JsonObject) => number;
  /** Bodies that differ in nothing but a text as content may share a call. */
  readonly isGrouped: boolean;
}

export class WholeRequest implements RenderedRequest {
  constructor(
    private readonly shape: RequestShape,
    readonly model: string,
    private readonly body: JsonObject,
  ) {}

  get endpoint(): EndpointName {
    return this.shape.endpoint;
  }

  get outputCap(): number | null {
    return this.shape.outputCapOf(this.body);
  }

  get serviceTier(): string | null {
    return serviceTierOf(this.body);
  }

  get inputText(): string {
    return this.shape.textOf(this.body);
  }

  get attachments(): readonly Attachment[] {
    return this.shape.attachmentsIn(this.body);
  }

  /** A list of contents is one document, whose answers belong together. */
  get groupKey(): string | null {
    const { [this.shape.contentField]: content, ...frame } = this.body;
    return this.shape.isGrouped && typeof content === 'string' ? groupKeyOf(frame) : null;
  }

  get inputs(): number {
    return this.shape.inputsOf(this.body);
  }

  get bodyJson(): string {
    return JSON.stringify(this.body);
  }

  /** The order of fields counts: that of a schema's properties changes answers. */
  get fingerprint(): string {
    return orderedText(this.body);
  }
}

/** @param frame of a body: all of it but its content */
export function groupKeyOf(frame: JsonObject): string {
  return digest(canonicalText(frame));
}

/** Makes one body of several that differ in their content alone. */
export function joinContents(contentField: string): (bodies: readonly string[]) => string {
  return (bodies) => {
    const parsed = bodies.map((body) => JSON.parse(body) as JsonObject);
    const contents = parsed.map((body) => body[contentField] ?? null);
    return JSON.stringify({ ...parsed[0], [contentField]: contents });
  };
}
