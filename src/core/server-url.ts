/** The URL of a database server. */

const SECRET_PARAMETERS = ['password', 'sslpassword'];

/** Without what is secret in it; null for what is no URL. */
export function withoutPassword(url: string): string | null {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return null;
  }
  parsed.password = '';
  for (const name of SECRET_PARAMETERS) parsed.searchParams.delete(name);
  return parsed.href;
}
