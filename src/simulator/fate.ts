/** What a readable call meets before the limits are asked: an outage, an empty account, its directive, a fault. */
import { type Plan, play, type Scene } from './behaviour.js';
import type { Customer } from './customers.js';
import { type BehaviourName, type Directive, findDirective } from './directive.js';
import type { SimulatorSettings } from './options.js';
import { insufficientQuota, invalidRequest, modelNotFound, type Refusal } from './refusal.js';
import { seededShare } from './seeded.js';

export interface Circumstances extends Omit<Scene, 'argument' | 'waitMs' | 'key'> {
  readonly customer: Customer;
  /** When the outage was set, on the monotonic clock. */
  readonly outageSetMs: number;
}

export interface Fate {
  readonly plan: Plan;
  /** The directive, fault or outage, if it is one. */
  readonly behaviour: BehaviourName | null;
  /** True when it uses up one of the calls that a directive counts. */
  readonly counts: boolean;
}

export function fateOf(circumstances: Circumstances): Fate {
  const { inquiry, settings, document, customer, nowMs } = circumstances;
  if (settings.models !== null && !settings.models.includes(inquiry.model)) {
    return refused(modelNotFound(inquiry.model));
  }
  const scene = { ...circumstances, key: customer.key };
  const outage = outageOf(settings, circumstances.outageSetMs, nowMs);
  if (outage !== null) {
    const { name, argument } = outage.directive;
    const plan = play(name, { ...scene, argument, waitMs: outage.leftMs });
    return { plan, behaviour: name, counts: false };
  }
  if (customer.insufficientQuotaAfter !== null && customer.accepted >= customer.insufficientQuotaAfter) {
    return refused(insufficientQuota(), 'insufficient-quota');
  }
  const directive = directiveOf(circumstances);
  if (typeof directive === 'string') {
    const message = `The simulator knows no directive "${directive}".`;
    return refused(invalidRequest(message, 'messages', 'unknown_directive'));
  }
  const met = directive !== null && document.met < directive.firstCalls ? directive : null;
  const plan = play(met?.name ?? 'ok', { ...scene, argument: met?.argument ?? null, waitMs: null });
  return { plan, behaviour: met?.name ?? null, counts: true };
}

function refused(refusal: Refusal, behaviour: BehaviourName | null = null): Fate {
  return { plan: { admitted: false, refusal }, behaviour, counts: false };
}

function outageOf(
  { outage }: SimulatorSettings,
  setMs: number,
  nowMs: number,
): { readonly directive: Directive; readonly leftMs: number } | null {
  if (outage === null) return null;
  const startMs = setMs + outage.afterMs;
  const leftMs = startMs + outage.forMs - nowMs;
  return nowMs >= startMs && leftMs > 0 ? { directive: outage.directive, leftMs } : null;
}

/** The document's own directive, else a seeded fault; the text of a directive that is unknown. */
function directiveOf({ inquiry, document, settings }: Circumstances): Directive | string | null {
  const asked = settings.directives ? findDirective(inquiry.userTexts) : undefined;
  if (asked !== undefined) return asked;
  if (settings.faults.length === 0) return null;
  let point = seededShare(settings.seed, 'fault', inquiry.fingerprint, document.met);
  for (const { share, directive } of settings.faults) {
    if (point < share) return directive;
    point -= share;
  }
  return null;
}
