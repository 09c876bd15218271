/** Which parameters the form shows: the usual ones, those that somebody turned, and all of them where asked. */
import { computed, reactive, ref, watch } from 'vue'

import { readChoice, writeChoice } from '@/composables/storedChoice'

import type { Parameter, Recipe } from '../types'

const KEY = 'trellis.launch.settings'
const CHOICES = ['usual', 'all'] as const

/** `isTouched` says of a rare parameter that it has a value of its own, or that something is wrong with it. */
export function useShownParameters(recipe: () => Recipe, isTouched: (name: string) => boolean) {
  const showsAll = ref(readChoice(KEY, CHOICES) === 'all')
  const needle = ref('')
  const wanted = computed(() => needle.value.trim().toLowerCase())
  /** Names of rare ones that were touched: what is being typed into stays, also once it says what it said before. */
  const taken = reactive(new Set<string>())

  const touched = computed(() =>
    recipe()
      .parameters.filter(({ name, advanced }) => advanced && isTouched(name))
      .map(({ name }) => name),
  )
  function forgetUntouched(): void {
    taken.clear()
    for (const name of touched.value) taken.add(name)
  }
  watch(
    touched,
    (names) => {
      for (const name of names) taken.add(name)
    },
    { immediate: true },
  )
  watch([() => recipe().id, showsAll], forgetUntouched)
  watch(showsAll, (all) => {
    writeChoice(KEY, all ? 'all' : 'usual')
  })

  function isFound({ name, title, engine_keys: keys }: Parameter): boolean {
    return [name, title.en, title.zh, ...(keys ?? [])].some((text) => text.toLowerCase().includes(wanted.value))
  }

  /** The mixture of rewards is the other way to say what the reward says. */
  const shown = computed(() =>
    recipe().parameters.filter((parameter) => {
      if (wanted.value !== '') return isFound(parameter)
      return showsAll.value || !parameter.advanced || parameter.type === 'rewards' || taken.has(parameter.name)
    }),
  )
  const isGrouped = computed(() => showsAll.value || wanted.value !== '')
  const hiddenCount = computed(() => (wanted.value === '' ? recipe().parameters.length - shown.value.length : 0))

  return { showsAll, needle, shown, isGrouped, hiddenCount }
}
