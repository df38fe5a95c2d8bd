/**
 * Keeps webhooks off whatever is inside: their addresses come from whoever hands in a task, and this machine reaches more
 * than he does. An address is judged where it is written, before anything connects, and again where the socket looks
 * a name up, since a name may lead elsewhere a moment later; a `lookup` is never called for a literal address. What is
 * judged is what a connection would be made to: `new URL` has turned 2130706433, 0x7f.1 and the like into 127.0.0.1.
 */
import { lookup as lookUp } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/** All addresses of a name. */
export type ResolveName = (
  name: string,
) => Promise<readonly { readonly address: string; readonly family: number }[]>;

export class AddressGuard {
  readonly #allowed: ReadonlySet<string>;
  readonly #resolve: ResolveName;

  /** @param allowedHosts of the operator: `host` or `host:port`; they may be anywhere, and take plain http too */
  constructor(allowedHosts: readonly string[], resolve: ResolveName = (name) => lookUp(name, { all: true })) {
    this.#allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
    this.#resolve = resolve;
  }

  /** Why a webhook may not go there, as far as the address itself tells; null: it may. */
  refuse(address: string): string | null {
    const url = URL.canParse(address) ? new URL(address) : null;
    if (url === null || !/^https?:$/.test(url.protocol)) return 'must be an https URL';
    if (url.username !== '' || url.password !== '') return 'must hold no user name or password';
    if (this.#allows(url)) return null;
    if (url.protocol !== 'https:') return 'must be an https URL';
    if (url.port !== '' && Number(url.port) < FIRST_FREE_PORT) return 'names a port of another service';
    const literal = url.hostname.replace(/^\[|\]$/g, '');
    return isIP(literal) !== 0 && !isPublic(literal) ? INSIDE : null;
  }

  /** For the socket of a request to this address: names lead nowhere but outside, whatever they resolve to. */
  lookupFor(address: string): LookupFunction {
    const allows = this.#allows(new URL(address));
    return (name, { all = false }, callback) => {
      this.#resolve(name).then(
        (found) => {
          const [first] = found;
          if (first === undefined) return callback(new Error(`${name} has no address`), '', 0);
          // One that leads inside is enough: which of them a socket would take is anybody's guess.
          if (!allows && !found.every((each) => isPublic(each.address))) {
            return callback(new Error(`${name} ${INSIDE}`), '', 0);
          }
          return all ? callback(null, [...found]) : callback(null, first.address, first.family);
        },
        (error: NodeJS.ErrnoException) => callback(error, '', 0),
      );
    };
  }

  #allows({ hostname, host }: URL): boolean {
    return this.#allowed.has(hostname) || this.#allowed.has(host);
  }
}

const INSIDE = 'leads to a private, local or reserved address';
/** Below are ports of mail, databases of names and the like, which some answer to whatever is written. */
const FIRST_FREE_PORT = 1_024;

/**
 * Whether an address is of the public internet: by IANA's registries of special-purpose addresses (RFC 6890), as
 * ipaddr.js has them; of IPv6 what is given out at all (2000::/3), so that no way to write an IPv4 address within is missed.
 */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address.split('%', 1)[0] ?? '');
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || parsed.match(ipaddr.parse('2000::'), 3);
}
