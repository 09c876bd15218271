/** Environments whose tools can be called; read once somebody wants to use one. */
import type { Ref } from 'vue'

import { api, unwrap } from '@/api/client'
import { readAllPages } from '@/api/useCursorList'
import { type Resource, useResource } from '@/api/useResource'
import type { Environment } from '@/environments'

const PAGE_SIZE = 100

export function useCallableEnvironments(isWanted: Ref<boolean>): Resource<Environment[] | null> {
  return useResource(
    async (signal) => {
      if (!isWanted.value) return null
      const all = await readAllPages<Environment>((cursor) =>
        unwrap(api.GET('/api/v1/environments', { params: { query: { limit: PAGE_SIZE, cursor } }, signal })),
      )
      return all.filter(({ can_call: canCall }) => canCall)
    },
    { watch: isWanted },
  )
}
