import { describe, expect, it } from 'vitest';
import { checkParameters, parseParameter, parseParameters } from '../../src/documents/parameter.js';
import { ENDPOINTS } from '../../src/endpoints/endpoints.js';

describe('a parameter', () => {
  it.each([
    ['temperature=0.2', 'temperature', 0.2],
    ['logprobs=true', 'logprobs', true],
    ['stop=END', 'stop', 'END'],
    ['stop="1"', 'stop', '1'],
    ['stop=["a","b"]', 'stop', ['a', 'b']],
    ['reasoning_effort=low', 'reasoning_effort', 'low'],
    ['user=a=b', 'user', 'a=b'],
    ['user=', 'user', ''],
    ['response_format={"type":"json_object"}', 'response_format', { type: 'json_object' }],
    ['n=1', 'n', 1],
    ['stream=false', 'stream', false],
  ])('reads %s', (text, name, value) => {
    expect(parseParameter(text)).toEqual({ name, value });
  });

  it.each([
    ['no name=value', 'temperature', 'PARAMETER_SYNTAX'],
    ['no name', '=1', 'PARAMETER_SYNTAX'],
    ['JSON the shell has eaten the quotes of', 'response_format={type:json_object}', 'PARAMETER_SYNTAX'],
    ['the model', 'model=gpt-4o', 'PARAMETER_REFUSED'],
    ['messages', 'messages=[]', 'PARAMETER_REFUSED'],
    ['__proto__', '__proto__={"a":1}', 'PARAMETER_REFUSED'],
    ['an integer that would be rounded', 'seed=9007199254740993', 'PARAMETER_INEXACT'],
    ['one inside', 'metadata={"a":[9007199254740993]}', 'PARAMETER_INEXACT'],
  ])('refuses %s', (_name, text, code) => {
    expect(() => parseParameter(text)).toThrow(expect.objectContaining({ code, exitCode: 2 }));
  });

  it.each([
    ['a stream', 'chat', { stream: true }],
    ['several answers', 'chat', { n: 2 }],
    ['vectors as text', 'embeddings', { encoding_format: 'base64' }],
    ['a length that is none', 'embeddings', { dimensions: 0 }],
    ['what is for text', 'embeddings', { temperature: 0 }],
    ['what is for text', 'moderations', { max_tokens: 5 }],
    ['another name of its own', 'responses', { max_tokens: 5 }],
    ['the place that chat has', 'responses', { response_format: { type: 'json_object' } }],
    ['an answer that is not waited for', 'responses', { background: true }],
    ['several texts', 'completions', { n: 2 }],
  ] as const)('is refused for %s, by its endpoint', (_name, endpoint, parameters) => {
    const refused = expect.objectContaining({ code: 'PARAMETER_REFUSED', exitCode: 2 });
    expect(() => checkParameters(parameters, ENDPOINTS[endpoint])).toThrow(refused);
    expect(() => checkParameters({ user: 'me' }, ENDPOINTS[endpoint])).not.toThrow();
  });

  it('is overridden by a later one of its name', () => {
    expect(parseParameters(['temperature=1', 'top_p=0.5', 'temperature=0'])).toEqual({
      temperature: 0,
      top_p: 0.5,
    });
    expect(parseParameters([])).toEqual({});
  });
});
