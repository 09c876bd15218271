/** Both languages at once, for tests; a page loads the one that it shows. */
import { messages as en } from './texts/en'
import { messages as zh } from './texts/zh'

export const messages = { en, zh }
