import { afterEach, describe, expect, it, vi } from 'vitest'

/** The module as a browser on this platform loads it. */
async function keysOn(platform: string) {
  vi.resetModules()
  vi.stubGlobal('navigator', { platform })
  return await import('./keys')
}

afterEach(() => vi.unstubAllGlobals())

describe('the keys that send a form', () => {
  it.each([
    ['MacIntel', '⌘'],
    ['Linux x86_64', 'Ctrl'],
    ['Win32', 'Ctrl'],
  ])('on %s are %s and Enter', async (platform, modifier) => {
    const keys = await keysOn(platform)

    expect(keys.SUBMIT_KEYS).toEqual([modifier, 'Enter'])
  })
})
