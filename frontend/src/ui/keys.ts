/** Names of keys as they are printed on the reader's keyboard. */

/** The key that is held while Enter sends a form: ⌘ on a Mac or an iPad, Ctrl elsewhere. */
export const MODIFIER_KEY: string = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl'

/** The keys that send a form. */
export const SUBMIT_KEYS: readonly string[] = [MODIFIER_KEY, 'Enter']

/** The key that ends what goes on. */
export const ESCAPE_KEY = 'Esc'
