/** Where to go after a login: a page of ours, never another site. */

export function safeReturnPath(value: unknown): string {
  if (typeof value !== 'string' || !value.startsWith('/')) return '/'
  const target = new URL(value, window.location.origin)
  if (target.origin !== window.location.origin || target.pathname === '/login') return '/'
  return target.pathname + target.search + target.hash
}
