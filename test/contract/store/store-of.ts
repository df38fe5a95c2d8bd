import { afterEach } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import type { OpenStoreUnderTest, StoreUnderTest } from './builders.js';

export interface StoreOf {
  /** The store of the running test; empty at first. */
  (): Promise<Store>;
  /** The same data, opened once more. */
  again(): Promise<Store>;
  /** As `StoreUnderTest.passTime`. */
  passTime(ms: number): Promise<void>;
}

/** Call inside a `describe`: every test gets a store of its own, and leaves none open. */
export function storePerTest(open: OpenStoreUnderTest): StoreOf {
  let current: Promise<StoreUnderTest> | null = null;
  afterEach(async () => {
    const opened = current;
    current = null;
    await (await opened)?.dispose();
  });
  const opened = (): Promise<StoreUnderTest> => {
    current ??= open();
    return current;
  };
  return Object.assign(async () => (await opened()).store, {
    again: async () => (await opened()).openAgain(),
    passTime: async (ms: number) => (await opened()).passTime(ms),
  });
}
