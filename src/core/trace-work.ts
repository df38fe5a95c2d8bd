/** Does work within a trace. Whoever works does not know whether anybody records it. */

/** `00-<trace id>-<span id>-<flags>`: version 00 of W3C Trace Context; another one is none of ours. */
export const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/**
 * @param name of the step
 * @param traceparent of the trace that it belongs to (W3C Trace Context); null: of none
 * @param work is given what it hands on to the next step
 */
export type TraceWork = <Result>(
  name: string,
  traceparent: string | null,
  work: (traceparent: string | null) => Promise<Result>,
) => Promise<Result>;
