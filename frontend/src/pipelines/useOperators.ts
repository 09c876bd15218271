/** The operators of this platform, read once for all pages. */
import { computed } from 'vue'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { currentLocale } from '@/i18n'
import { type Param, readParams } from '@/ui/schema/schema'

import type { Operator } from './types'

let known: Operator[] | null = null

export function useOperators() {
  const resource = useResource<Operator[]>(async (signal) => {
    // What an operator is changes with the platform's version only.
    known ??= (await unwrap(api.GET('/api/v1/pipelines/operators', { signal }))).items
    return known
  })
  const operators = computed(() => resource.data.value ?? [])
  const byId = computed(() => new Map(operators.value.map((one) => [one.id, one])))
  const paramsById = computed(
    () => new Map<string, Param[]>(operators.value.map((one) => [one.id, readParams(one.params_schema)])),
  )

  function operatorTitle(id: string): string {
    return byId.value.get(id)?.title[currentLocale()] ?? id
  }

  /** A step in reports: its own name, else its operator's title. */
  function stepTitle(step: { name?: string | null; operator: string }): string {
    const { name, operator } = step
    if (name === null || name === undefined || name === operator) return operatorTitle(operator)
    const number = name.startsWith(`${operator} `) ? name.slice(operator.length + 1) : ''
    return /^\d+$/.test(number) ? `${operatorTitle(operator)} ${number}` : name
  }

  return { resource, operators, byId, paramsById, operatorTitle, stepTitle }
}
