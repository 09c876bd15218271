/** A sentence that the server wrote, in the language of the page. */
import { currentLocale } from '.'
import { toChinese } from './serverTexts'

export function useServerText() {
  return function serverText(sentence: string): string {
    return currentLocale() === 'zh' ? toChinese(sentence) : sentence
  }
}
