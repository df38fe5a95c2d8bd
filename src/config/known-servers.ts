/** Servers whose keys users have in a variable of its own; docs/providers.md has the same addresses. */
export interface KnownServer {
  readonly name: string;
  /** As the provider's own documents and libraries call it. */
  readonly keyVariable: string;
  readonly baseUrl: string;
}

const SERVERS: readonly KnownServer[] = [
  { name: 'OpenRouter', keyVariable: 'OPENROUTER_API_KEY', baseUrl: 'https://openrouter.ai/api/v1' },
  { name: 'Groq', keyVariable: 'GROQ_API_KEY', baseUrl: 'https://api.groq.com/openai/v1' },
  { name: 'Anthropic', keyVariable: 'ANTHROPIC_API_KEY', baseUrl: 'https://api.anthropic.com/v1' },
  {
    name: 'Gemini',
    keyVariable: 'GEMINI_API_KEY',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
  },
  { name: 'Together', keyVariable: 'TOGETHER_API_KEY', baseUrl: 'https://api.together.xyz/v1' },
  { name: 'Mistral', keyVariable: 'MISTRAL_API_KEY', baseUrl: 'https://api.mistral.ai/v1' },
  { name: 'DeepSeek', keyVariable: 'DEEPSEEK_API_KEY', baseUrl: 'https://api.deepseek.com/v1' },
];

/** The first server whose key is set in this environment; null: none. */
export function serverWithKey(environment: Readonly<Record<string, string | undefined>>): KnownServer | null {
  const isSet = (variable: string): boolean => (environment[variable]?.trim() ?? '') !== '';
  const known = SERVERS.find(({ keyVariable }) => isSet(keyVariable));
  if (known !== undefined) return known;
  if (!isSet('AZURE_OPENAI_API_KEY')) return null;
  // Its address is the resource's own.
  const given = environment['AZURE_OPENAI_ENDPOINT']?.trim().replace(/\/$/, '');
  const baseUrl = `${given || 'https://RESOURCE.openai.azure.com'}/openai/v1`;
  return { name: 'Azure OpenAI', keyVariable: 'AZURE_OPENAI_API_KEY', baseUrl };
}
