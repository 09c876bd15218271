/** Both languages at once, for tests; a page loads what it shows. */
import { messages as en } from './texts/en'
import { messages as enRest } from './texts/enRest'
import { messages as zh } from './texts/zh'
import { messages as zhRest } from './texts/zhRest'

export const messages = { en: { ...en, ...enRest }, zh: { ...zh, ...zhRest } }
