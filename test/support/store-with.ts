/** A real store of which single methods do something else: fail, count, look. */
import type { Store } from '../../src/store/store.js';

export function storeWith(store: Store, methods: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const own = methods[name as keyof Store];
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
