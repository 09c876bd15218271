/** What the form of a step knows beyond the schema of its operator: columns, judges, names of choices. */
import { computed, type ComputedRef } from 'vue'

import { useTextOr } from '@/i18n/useTextOr'
import type { FormHints } from '@/ui/schema/schema'

import { type Suggestions, suggestionsFor } from './suggestions'

/** Parameters of most operators; their defaults suit most datasets. */
export const FOLDED_PARAMS: readonly string[] = ['where', 'columns']

export function useStepHints(suggestions: () => Suggestions): ComputedRef<FormHints> {
  const textOr = useTextOr()
  return computed(() => ({
    suggest: (param) => suggestionsFor(param, suggestions()),
    // The same word may mean different things in two parameters.
    choiceText: ({ name }, value) =>
      textOr(`pipelines.choice.${name}.${value}`, textOr(`pipelines.choice.any.${value}`, value)),
  }))
}
