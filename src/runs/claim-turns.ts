/**
 * Which of the runs that one process sends comes next. Runs that go to the same servers with the same keys share what
 * these allow, so among them the higher priority comes first, task by task, and runs of equal priority share the calls
 * that may be open; runs that go elsewhere are in nobody's way.
 */
import type { ClaimTurn, ClaimTurns } from '../engine/drain.js';
import type { RunWork, Store } from '../store/store.js';
import { lanesOf, type RunSettings } from './run-settings.js';

/** A run that is being sent. */
interface Competitor {
  readonly servers: string;
  /** Has been told to wait for its turn. */
  isHeld: boolean;
  /** Its calls may still be open though it has nothing left to claim. */
  readonly openCalls: () => number;
  readonly look: () => void;
}

export class RunTurns {
  readonly #store: Pick<Store, 'listWork'>;
  readonly #onOtherWork: () => void;
  readonly #competitors = new Map<number, Competitor>();

  /** @param onOtherWork told when a run has work that nobody sends */
  constructor(store: Pick<Store, 'listWork'>, onOtherWork: () => void) {
    this.#store = store;
    this.#onOtherWork = onOtherWork;
  }

  /** From here on the run takes its turns with the others, until the returned function is called. */
  join(
    runId: number,
    settings: RunSettings,
    { openCalls, look }: Pick<Competitor, 'openCalls' | 'look'>,
  ): () => void {
    this.#competitors.set(runId, { servers: serversOf(runId, settings), isHeld: false, openCalls, look });
    return () => this.#competitors.delete(runId);
  }

  of(runId: number): ClaimTurns {
    return { next: async () => this.#turnOf(runId, await this.#store.listWork()) };
  }

  #turnOf(runId: number, work: readonly RunWork[]): ClaimTurn {
    const priorities = new Map(work.map((each) => [each.runId, each.priority]));
    if (work.some((each) => !this.#competitors.has(each.runId))) this.#onOtherWork();
    const turn = this.#judge(runId, priorities);
    // What this one has just taken may have been all that another waited for.
    for (const [otherId, other] of this.#competitors) {
      if (otherId === runId || !other.isHeld || this.#judge(otherId, priorities) === 'later') continue;
      other.isHeld = false;
      other.look();
    }
    const own = this.#competitors.get(runId);
    if (own !== undefined) own.isHeld = turn === 'later';
    return turn;
  }

  #judge(runId: number, priorities: ReadonlyMap<number, number>): ClaimTurn {
    const priority = priorities.get(runId);
    if (priority === undefined) return 'none';
    const servers = this.#competitors.get(runId)?.servers;
    let atLeastPriority = Number.NEGATIVE_INFINITY;
    let sharedBy = 1;
    for (const [otherId, other] of this.#competitors) {
      if (otherId === runId || other.servers !== servers) continue;
      const others = priorities.get(otherId) ?? Number.NEGATIVE_INFINITY;
      if (others > priority) return 'later';
      atLeastPriority = Math.max(atLeastPriority, others);
      if (others === priority || other.openCalls() > 0) sharedBy += 1;
    }
    return { atLeastPriority, sharedBy };
  }
}

/** A rehearsal has a server of its own. */
function serversOf(runId: number, settings: RunSettings): string {
  if (settings.simulator !== null) return `simulated ${runId}`;
  return JSON.stringify(
    lanesOf(settings)
      .map(({ baseUrl, apiKeyEnv }) => [baseUrl, apiKeyEnv])
      .sort(),
  );
}
