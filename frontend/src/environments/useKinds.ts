/** The kinds of environments that can be made, and their names in the reader's language. */
import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { currentLocale } from '@/i18n'

export function useKinds() {
  const kinds = useResource(async (signal) => (await unwrap(api.GET('/api/v1/environments/kinds', { signal }))).items)

  /** Its own name where the catalogue is not here or does not know it. */
  function kindTitle(name: string): string {
    return kinds.data.value?.find((kind) => kind.name === name)?.title[currentLocale()] ?? name
  }

  return { kinds, kindTitle }
}
