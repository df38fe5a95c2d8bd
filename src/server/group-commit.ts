/**
 * Gathers what many requests want to have stored, so that one commit, and one fsync, serves all of them. While one is
 * under way, the next gathers.
 */
import { nextTurn } from '../core/clock.js';

interface Waiting<Item, Outcome> {
  readonly item: Item;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

export class GroupCommit<Item, Outcome> {
  readonly #commit: (items: readonly Item[]) => Promise<readonly Outcome[]>;
  readonly #mostItems: number;
  #waiting: Waiting<Item, Outcome>[] = [];
  #working: Promise<void> | null = null;

  /** @param commit gives one outcome for each item, or throws for all of them */
  constructor(commit: (items: readonly Item[]) => Promise<readonly Outcome[]>, mostItems: number) {
    this.#commit = commit;
    this.#mostItems = mostItems;
  }

  /** Resolves when the item is committed. */
  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  /** Resolves when nothing is left to be committed. */
  async settled(): Promise<void> {
    while (this.#working !== null) await this.#working;
  }

  async #work(): Promise<void> {
    // Requests that have come in together are looked at one after the other.
    await nextTurn();
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#mostItems);
      try {
        const outcomes = await this.#commit(group.map(({ item }) => item));
        for (const [index, { resolve }] of group.entries()) resolve(outcomes[index] as Outcome);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
      await nextTurn();
    }
    this.#working = null;
  }
}
