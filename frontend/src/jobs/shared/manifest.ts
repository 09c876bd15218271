/** What the dashboard reads out of a manifest; a run of another version may have written less. */

type Manifest = Readonly<Record<string, unknown>>

/** The engine's resolved configuration, or null. */
export function configOf(manifest: Manifest): unknown {
  const { config } = manifest
  return typeof config === 'object' && config !== null ? config : null
}

/** The lines by which the configuration differs from the engine's own, or null. */
export function overridesOf(manifest: Manifest): string[] | null {
  const lines = manifest.engine_overrides
  return Array.isArray(lines) ? lines.filter((line) => typeof line === 'string') : null
}

/** The command that replays the run, or null. */
export function commandOf(manifest: Manifest): string | null {
  return typeof manifest.command === 'string' && manifest.command !== '' ? manifest.command : null
}

/** The rest: configuration and command have places of their own. */
export function withoutConfig(manifest: Manifest): Record<string, unknown> {
  return Object.fromEntries(Object.entries(manifest).filter(([key]) => !['config', 'command'].includes(key)))
}
