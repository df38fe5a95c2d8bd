/** Certificates for servers of tests: made anew each time, so that none expires and no key lies in the repository. */
import { generateKeyPairSync, sign } from 'node:crypto';

export interface Certificate {
  /** Both in PEM. */
  readonly key: string;
  readonly cert: string;
}

/** An elliptic key and a certificate signed with it, for a host name and for 127.0.0.1. DER as in RFC 5280, section 4.1. */
export function selfSignedCertificate(host: string): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(element(0x31, sequence(COMMON_NAME, element(0x0c, Buffer.from(host)))));
  const years = sequence(utcTime('200101000000Z'), utcTime('491231235959Z'));
  const names = sequence(element(0x82, Buffer.from(host)), element(0x87, Buffer.from([127, 0, 0, 1])));
  const extensions = sequence(sequence(ALTERNATIVE_NAMES, element(0x04, names)));
  const signed = sequence(
    element(0xa0, element(0x02, Buffer.from([2]))),
    element(0x02, Buffer.from([1])),
    ECDSA_WITH_SHA256,
    name,
    years,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    element(0xa3, extensions),
  );
  const signature = element(0x03, Buffer.from([0]), sign('sha256', signed, privateKey));
  const lines =
    sequence(signed, ECDSA_WITH_SHA256, signature)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
  };
}

function element(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return element(0x30, ...parts);
}

function utcTime(text: string): Buffer {
  return element(0x17, Buffer.from(text));
}

const ECDSA_WITH_SHA256 = sequence(Buffer.from('06082a8648ce3d040302', 'hex'));
const COMMON_NAME = Buffer.from('0603550403', 'hex');
const ALTERNATIVE_NAMES = Buffer.from('0603551d11', 'hex');
