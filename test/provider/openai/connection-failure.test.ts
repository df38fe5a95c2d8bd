import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../../src/core/redact.js';
import { classifyConnectionFailure } from '../../../src/provider/openai/connection-failure.js';
import { TransportError } from '../../../src/provider/openai/transport.js';

const context = {
  url: 'https://api.example.test/v1/chat/completions',
  nowMs: 0,
  redact: createRedactor(['hunter2hunter2']),
};

describe('a call that broke off', () => {
  it.each([
    ['ENOTFOUND', 'network', 'The host name could not be found'],
    ['EAI_AGAIN', 'network', 'The host name could not be looked up just now'],
    ['ECONNREFUSED', 'network', 'Nothing accepts connections there'],
    ['ECONNRESET', 'network', 'The connection was reset'],
    ['EPIPE', 'network', 'The connection was closed'],
    ['ETIMEDOUT', 'network', 'No connection could be made in time'],
    ['EHOSTUNREACH', 'network', 'The host cannot be reached'],
    ['ENETUNREACH', 'network', 'The network cannot be reached'],
    ['UND_ERR_SOCKET', 'network', 'The connection was closed before the answer was complete'],
    ['UND_ERR_CONNECT_TIMEOUT', 'network', 'No connection could be made in time'],
    ['UND_ERR_HEADERS_TIMEOUT', 'timeout', 'No headers of an answer came in time'],
    ['UND_ERR_BODY_TIMEOUT', 'timeout', 'The answer stopped coming'],
    ['UND_ERR_HEADERS_OVERFLOW', 'network', "The answer's headers are too large"],
    ['HPE_INVALID_HEADER_TOKEN', 'network', 'What answers there does not speak HTTP'],
    ['CERT_HAS_EXPIRED', 'network', "The server's certificate has expired"],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'network', "The server's certificate is not trusted"],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'network', "The server's certificate is not trusted"],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'network', "The server's certificate is for another host name"],
    ['EPROTO', 'network', 'No secure connection could be made'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'network', 'No secure connection could be made'],
    ['RESPONSE_TOO_LARGE', 'bad_output', 'The answer is larger than this program accepts'],
    ['E_NEVER_HEARD_OF', 'network', 'The call broke off'],
  ])('with %s is %s and says so', (code, kind, sentence) => {
    const failure = classifyConnectionFailure(new TransportError(code, 'some detail'), context);
    expect(failure).toEqual({ kind, code, message: expect.any(String) });
    expect(failure.message).toContain(sentence);
    expect(failure.message).toContain(`https://api.example.test (${code}: some detail)`);
  });

  it.each([
    ['EMFILE', 'connections'],
    ['ENFILE', 'connections'],
    ['ENOMEM', 'connections'],
    ['ENOBUFS', 'connections'],
    ['EADDRNOTAVAIL', 'connections'],
    ['ENETDOWN', 'network'],
    ['ENETUNREACH', 'network'],
    ['EHOSTUNREACH', 'network'],
    ['ECONNREFUSED', undefined],
    ['ENOTFOUND', undefined],
  ])('before it left, with %s, this machine is short of: %s', (code, shortOf) => {
    const unsent = classifyConnectionFailure(new TransportError(code, '', true), context);
    expect(unsent).toMatchObject({ kind: 'network', isUnsent: true });
    expect(unsent.shortOf).toBe(shortOf);
    // On its way the network may have ended it, which says nothing of this machine.
    const sent = classifyConnectionFailure(new TransportError(code, ''), context);
    expect([sent.isUnsent, sent.shortOf]).toEqual([undefined, undefined]);
  });

  it('says its code once, and no secret', () => {
    const error = new TransportError('ENOTFOUND', 'getaddrinfo ENOTFOUND http://me:hunter2hunter2@proxy');
    expect(classifyConnectionFailure(error, context).message).toBe(
      'The host name could not be found: https://api.example.test (getaddrinfo ENOTFOUND http://me:[redacted]@proxy)',
    );
  });
});
