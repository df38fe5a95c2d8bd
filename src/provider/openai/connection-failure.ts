/** What went wrong where no whole response came back: names, connections, certificates, bodies cut off. */
import type { FailureKind, ProviderFailure } from '../../core/failure.js';
import { buildFailure, type FailureContext } from './classify.js';
import type { TransportError } from './transport.js';
import { SHORT_OF } from './tunnel.js';

const SENTENCES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "The server's certificate has expired (or the clock of this machine is wrong)",
  CERT_NOT_YET_VALID: "The server's certificate is not valid yet (or the clock of this machine is wrong)",
  CERT_REVOKED: "The server's certificate has been revoked",
  ERR_TLS_CERT_ALTNAME_INVALID: "The server's certificate is for another host name",
  HOSTNAME_MISMATCH: "The server's certificate is for another host name",
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
  PROXY_AUTH: 'The proxy wants a user name and a password, in its address (http://USER:PASSWORD@host:port)',
  PROXY_REFUSED: 'The proxy does not allow calls to this server',
  PROXY_LEADS_NOWHERE: 'The proxy could not reach the server',
  PROXY_UNREACHABLE: 'The proxy cannot be reached',
  PROXY_CLOSED: 'The proxy closed the connection and led nowhere',
  BAD_CONTENT_ENCODING: 'The compressed answer could not be unpacked',
  RESPONSE_TOO_LARGE: 'The answer is larger than this program accepts',
};

/** Undici's words for it are "bad response"; it takes none. */
const UNASKED_CONTINUE = "The server answered '100 Continue', which nobody asked for";

const KINDS: Readonly<Record<string, FailureKind>> = {
  // Nothing can be sent until somebody has mended that.
  PROXY_AUTH: 'auth',
  PROXY_REFUSED: 'auth',
  RESPONSE_TOO_LARGE: 'bad_output',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
};

/** OpenSSL's and Node's words for a certificate that is not trusted, not valid, or for another name. */
const CERTIFICATE = /CERT|^DEPTH_ZERO|^UNABLE_TO_|^SELF_SIGNED|^HOSTNAME_MISMATCH|^CRL_/;

/** Classifies an exchange that broke off. The code goes along, so that like failures can be counted. */
export function classifyConnectionFailure(error: TransportError, context: FailureContext): ProviderFailure {
  const { code, detail } = error;
  const isUnasked = code === 'UND_ERR_SOCKET' && detail === 'bad response';
  const sentence = isUnasked ? UNASKED_CONTINUE : (SENTENCES[code] ?? sentenceFor(code));
  const told = detail === '' || detail.includes(code) ? detail || code : `${code}: ${detail}`;
  // A proxy's trouble is told with its own name.
  const message = code.startsWith('PROXY_')
    ? `${sentence} (${detail})`
    : `${sentence}: ${new URL(context.url).origin} (${told})`;
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
