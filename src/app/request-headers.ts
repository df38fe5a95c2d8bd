/** The headers that a lane's calls carry: those that were asked for, with the values of their variables. */
import { fillHeaders, isSendable, troubleOfHeader, variablesOf } from '../config/header-texts.js';
import { usageError } from '../core/errors.js';
import type { LaneSettings } from '../runs/run-settings.js';
import type { CommandContext } from './context.js';

/**
 * Checks, before anything is read or stored, that the headers can be sent, and that no key is stored with the run.
 * @throws LlmBatchError HEADER_RESERVED, HEADER_SECRET, HEADER_INVALID, HEADER_VARIABLE_MISSING (exit 2)
 */
export function checkHeaders(lane: LaneSettings, { environment }: CommandContext): void {
  for (const [name, text] of Object.entries(lane.headers)) {
    switch (troubleOfHeader(name, text)) {
      case 'reserved':
        throw usageError(
          'HEADER_RESERVED',
          `The header ${name} is written by the connection itself.`,
          'leave it out',
        );
      case 'secret':
        throw usageError(
          'HEADER_SECRET',
          `The header ${name} holds what looks like a key, which would be stored with the run.`,
          { name },
        );
      case 'unsendable':
        throw invalid(name);
    }
    const missing = variablesOf({ [name]: text }).find((variable) => (environment[variable] ?? '') === '');
    if (missing !== undefined) {
      throw usageError(
        'HEADER_VARIABLE_MISSING',
        `The header ${name} takes its value from environment variable ${missing}, which is not set.`,
        `export ${missing}=…`,
      );
    }
  }
  for (const [name, value] of Object.entries(fillHeaders(lane.headers, (variable) => environment[variable])))
    if (!isSendable(value)) throw invalid(name);
}

function invalid(name: string): Error {
  return usageError(
    'HEADER_INVALID',
    `The header ${JSON.stringify(name)} holds characters that no header can carry.`,
    'use letters, digits and punctuation of ASCII, on one line',
  );
}

/** OpenAI's own, for accounts with several organizations or projects. */
const OF_OPENAI = { OPENAI_ORG_ID: 'OpenAI-Organization', OPENAI_PROJECT_ID: 'OpenAI-Project' } as const;

export function headersOf(lane: LaneSettings, { environment, takeSecret }: CommandContext) {
  const headers: Record<string, string> = {};
  if (/(?:^|\.)openai\.com$/.test(new URL(lane.baseUrl).hostname)) {
    for (const [variable, name] of Object.entries(OF_OPENAI)) {
      const value = environment[variable]?.trim() ?? '';
      if (value !== '' && isSendable(value)) headers[name] = value;
    }
  }
  // What stood in variables, to be kept out of every message.
  const secrets: string[] = [];
  const filled = fillHeaders(lane.headers, (variable) => {
    const value = takeSecret(variable);
    if (value !== undefined) secrets.push(value.trim());
    return value;
  });
  return { headers: { ...headers, ...filled }, secrets };
}
