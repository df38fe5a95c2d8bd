/** Which proxy of the environment, if any, stands between here and one server. */
import { BlockList, isIP } from 'node:net';
import { usageError } from '../../core/errors.js';
import { isLoopback } from '../../core/loopback.js';

export interface ProxyRoute {
  /** With user and password, if there are any. */
  readonly url: URL;
  /** Address and variable, fit to be shown. */
  readonly name: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const PROTOCOLS = ['http:', 'https:', 'socks5:', 'socks5h:'];
/** What a proxy is asked for first; `all_proxy` is curl's, and a sole HTTP_PROXY has always served https here too. */
const VARIABLES: Readonly<Record<string, readonly string[]>> = {
  'http:': ['http_proxy', 'all_proxy'],
  'https:': ['https_proxy', 'all_proxy', 'http_proxy'],
};

/**
 * Reads the customary variables; the lower-case names win, as in curl. Addresses of this machine need no proxy.
 * @throws LlmBatchError PROXY_INVALID (exit 2)
 */
export function proxyFor(server: URL, environment: Environment): ProxyRoute | null {
  const read = (name: string): string => (environment[name] || environment[name.toUpperCase()] || '').trim();
  const variable = VARIABLES[server.protocol]?.find((name) => read(name) !== '');
  if (variable === undefined || isLoopback(server.hostname)) return null;
  if (isExempt(server, read('no_proxy'))) return null;
  const shown = environment[variable] ? variable : variable.toUpperCase();
  const text = read(variable);
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || url.hostname === '' || !PROTOCOLS.includes(url.protocol)) {
    throw usageError(
      'PROXY_INVALID',
      `The proxy in ${shown} is not a usable address.`,
      'Set it to something like http://proxy.example:3128 or socks5h://proxy.example:1080, or unset it.',
    );
  }
  return { url, name: `${url.protocol}//${url.host} (${shown})` };
}

/** The password in a proxy's address, for the redactor. */
export function passwordsOf(proxy: ProxyRoute | null): string[] {
  const password = proxy?.url.password ?? '';
  return password === '' ? [] : [password, decodeURIComponent(password)];
}

/** As in curl and Go: names with all below them, addresses, ranges in CIDR notation, `*`, each but a range with a port. */
function isExempt(server: URL, list: string): boolean {
  const host = server.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const port = server.port || (server.protocol === 'https:' ? '443' : '80');
  return list
    .toLowerCase()
    .split(/[,\s]/)
    .some((entry) => entry !== '' && (entry === '*' || isInRange(host, entry) || isNamed(host, port, entry)));
}

function isInRange(host: string, entry: string): boolean {
  const [address = '', length = ''] = entry.split('/');
  const family = isIP(address);
  const bits = Number(length);
  if (family === 0 || !/^\d+$/.test(length) || bits > (family === 6 ? 128 : 32) || isIP(host) !== family) {
    return false;
  }
  const type = family === 6 ? 'ipv6' : 'ipv4';
  const range = new BlockList();
  range.addSubnet(address, bits, type);
  return range.check(host, type);
}

function isNamed(host: string, port: string, entry: string): boolean {
  const [, bracketed, plain, wantedPort] =
    isIP(entry) === 6 ? [null, entry] : (/^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? []);
  const name = (bracketed ?? plain ?? '').replace(/^\*?\./, '');
  if (name === '' || (wantedPort !== undefined && wantedPort !== port)) return false;
  return host === name || (isIP(host) === 0 && host.endsWith(`.${name}`));
}
