/** Environments and workflow files to filter jobs by: few, so all are read, once. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { readAllPages } from '@/api/useCursorList'
import { useResource } from '@/api/useResource'

interface Named {
  id: string
  name: string
}

const LIMIT = 100

function asOptions(found: readonly Named[] | null): { value: string; label: string }[] {
  return (found ?? []).map(({ id, name }) => ({ value: id, label: name }))
}

export function useAgentOptions() {
  const environments = useResource<Named[]>((signal) =>
    readAllPages((cursor) =>
      unwrap(api.GET('/api/v1/environments', { params: { query: { cursor, limit: LIMIT } }, signal })),
    ),
  )
  const workflows = useResource<Named[]>((signal) =>
    readAllPages((cursor) =>
      unwrap(api.GET('/api/v1/workflows', { params: { query: { cursor, limit: LIMIT } }, signal })),
    ),
  )
  return {
    environmentOptions: computed(() => asOptions(environments.data.value)),
    workflowOptions: computed(() => asOptions(workflows.data.value)),
  }
}
