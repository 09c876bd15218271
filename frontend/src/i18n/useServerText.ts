/** A sentence that the server wrote, in the language of the page. */
import { chinese, currentLocale } from '.'

export function useServerText() {
  return function serverText(sentence: string): string {
    return (currentLocale() === 'zh' ? chinese.value?.toChinese(sentence) : undefined) ?? sentence
  }
}
