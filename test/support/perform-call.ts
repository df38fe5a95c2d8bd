import { type CallContext, makeReady, type PerformedCall, sendCall } from '../../src/engine/call.js';
import type { PreparedTask } from '../../src/engine/prepared-task.js';

/** A call's whole way, as where no other calls are. */
export async function performCall(
  group: readonly PreparedTask[],
  context: CallContext,
): Promise<PerformedCall> {
  const made = await makeReady(group, context);
  return 'callId' in made ? sendCall(made, context) : made;
}
