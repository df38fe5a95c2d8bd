/** What went wrong where no whole response came back: names, connections, certificates, bodies cut off. */
import type { FailureKind, ProviderFailure } from '../../core/failure.js';
import { buildFailure, type FailureContext } from './classify.js';
import type { TransportError } from './transport.js';

const SENTENCES: Readonly<Record<string, string>> = {
  ENOTFOUND: 'The host name could not be found',
  EAI_AGAIN: 'The host name could not be looked up just now',
  ECONNREFUSED: 'Nothing accepts connections there',
  ECONNRESET: 'The connection was reset',
  EPIPE: 'The connection was closed while the request was sent',
  ETIMEDOUT: 'No connection could be made in time',
  EMFILE: 'This program may not open more connections and files (`ulimit -n`)',
  ENFILE: 'This machine cannot open more connections and files',
  ENOMEM: 'This machine has no memory for another connection',
  ENOBUFS: 'This machine has no memory for another connection',
  EADDRNOTAVAIL: 'This machine has no port left for another connection',
  ENETDOWN: 'The network of this machine is down',
  EHOSTUNREACH: 'The host cannot be reached',
  ENETUNREACH: 'The network cannot be reached',
  UND_ERR_SOCKET: 'The connection was closed before the answer was complete',
  UND_ERR_CONNECT_TIMEOUT: 'No connection could be made in time',
  UND_ERR_HEADERS_TIMEOUT: 'No headers of an answer came in time',
  UND_ERR_BODY_TIMEOUT: 'The answer stopped coming',
  UND_ERR_HEADERS_OVERFLOW: "The answer's headers are too large",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "The answer's length is not the one it announced",
  UND_ERR_ABORTED: 'The connection was not made',
  PROXY_CLOSED: 'The proxy closed the connection and led nowhere',
  BAD_CONTENT_ENCODING: 'The compressed answer could not be unpacked',
  RESPONSE_TOO_LARGE: 'The answer is larger than this program accepts',
};

const KINDS: Readonly<Record<string, FailureKind>> = {
  RESPONSE_TOO_LARGE: 'bad_output',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
};

/** Of the operating system's reasons not to connect, those that are this machine's own (POSIX, connect and socket). */
const SHORT_OF: Readonly<Record<string, ProviderFailure['shortOf']>> = {
  EMFILE: 'connections',
  ENFILE: 'connections',
  ENOMEM: 'connections',
  ENOBUFS: 'connections',
  EADDRNOTAVAIL: 'connections',
  ENETDOWN: 'network',
  ENETUNREACH: 'network',
  EHOSTUNREACH: 'network',
};

/** OpenSSL's and Node's words for a certificate that is not trusted, not valid, or for another name. */
const CERTIFICATE = /CERT|^DEPTH_ZERO|^UNABLE_TO_|^SELF_SIGNED|^HOSTNAME_MISMATCH|^CRL_/;

/** Classifies an exchange that broke off. The code goes along, so that like failures can be counted. */
export function classifyConnectionFailure(error: TransportError, context: FailureContext): ProviderFailure {
  const { code, detail } = error;
  const { origin } = new URL(context.url);
  const sentence = SENTENCES[code] ?? sentenceFor(code);
  const words = detail === '' || detail.includes(code) ? detail || code : `${code}: ${detail}`;
  const message = `${sentence}: ${origin} (${words})`;
  const failure = { ...buildFailure(KINDS[code] ?? 'network', message, context), code };
  if (!error.isUnsent) return failure;
  const shortOf = SHORT_OF[code];
  return { ...failure, isUnsent: true, ...(shortOf !== undefined && { shortOf }) };
}

function sentenceFor(code: string): string {
  if (CERTIFICATE.test(code))
    return "The server's certificate is not trusted; NODE_EXTRA_CA_CERTS can name the authority that signed it";
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') return 'No secure connection could be made';
  if (code.startsWith('HPE_') || code === 'HTTPParserError') {
    return 'What answers there does not speak HTTP as it should';
  }
  return 'The call broke off';
}
