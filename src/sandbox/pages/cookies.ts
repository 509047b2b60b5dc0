/** `Cookie` header by name. */
export function parseCookies(header: string | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries(
    (header ?? '').split(';').flatMap((pair) => {
      const [, name, value] = /^\s*([^=\s]+)=(.*?)\s*$/.exec(pair) ?? [];
      return name !== undefined && value !== undefined ? [[name, value]] : [];
    }),
  );
}
