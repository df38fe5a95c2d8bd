/**
 * The whole program on a machine where one more host name is known: `node named-host.mjs HOST FILE node dist/cli.js …`
 * finds HOST at 127.0.0.1, and not at all while FILE is there.
 */
import dns from 'node:dns';
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [node, , host, file, , entry, ...programArguments] = process.argv;
const { lookup } = dns;

dns.lookup = (name, options, callback) => {
  if (name !== host) return lookup(name, options, callback);
  if (existsSync(file)) {
    const error = Object.assign(new Error(`getaddrinfo EAI_AGAIN ${host}`), { code: 'EAI_AGAIN' });
    process.nextTick(callback, error);
  } else lookup('127.0.0.1', options, callback);
};

process.argv = [node, entry, ...programArguments];
await import(pathToFileURL(entry).href);
