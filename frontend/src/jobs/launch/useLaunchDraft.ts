/** The draft of a launch: prefilled from a job or with what suits the machine, kept sound while choices change. */
import { computed, nextTick, reactive, ref, shallowRef, watch } from 'vue'
import { useI18n } from 'vue-i18n'
import { useRoute } from 'vue-router'

import { api, unwrap } from '@/api/client'
import { type ApiError, asApiError } from '@/api/errors'
import { addressOf } from '@/composables/keptDrafts'
import { usePlatform } from '@/composables/usePlatform'
import { readColumns, readTerms } from '@/rewards'

import { useRecipes } from '../shared/useRecipes'
import type { Job, ParameterChange, Recipe } from '../types'
import { carryOver, emptyParked } from './carry'
import { copyOf } from './copyName'
import {
  type Draft,
  draftOfJob,
  emptyDraft,
  inheritedValue,
  presetForMachine,
  presetOf,
  suitsPlatform,
  withChanges,
} from './draft'
import { setReading } from './fit/reading'
import { keptLaunches } from './kept'
import { recipeForAll, recipeForFormat } from './recipes/forData'
import { type Choice, useChoices } from './useChoices'

const FIRST_RECIPE = 'grpo'

function fromQuery(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

export function useLaunchDraft() {
  const { t } = useI18n()
  const route = useRoute()
  const catalogue = useRecipes()
  const platform = usePlatform()
  // Whoever comes back to an address finds the form as it was left there.
  const address = addressOf(route.query)
  const kept = keptLaunches.read(address)
  const draft = reactive<Draft>(kept?.draft ?? emptyDraft())
  const source = shallowRef<Job | null>(null)
  /** What is suggested against the failure of the job that is copied. */
  const changes = shallowRef<readonly ParameterChange[]>([])
  const sourceError = shallowRef<ApiError | null>(null)
  const isPrefilling = ref(false)
  const hasChosenPreset = ref(kept?.draft.preset != null)
  /** The preset is that of a job that is copied, which may have been chosen for another platform. */
  const isCopiedPreset = ref(false)
  let parked = emptyParked()

  const recipe = computed<Recipe | null>(() => catalogue.recipes.value.find((one) => one.id === draft.recipe) ?? null)
  const choices = useChoices(() => recipe.value)
  const slots = computed(() => platform.data.value?.slots.total ?? null)

  /** Of a draft that came back, the job it copies is only named. */
  async function prefill(jobId: string, isNamed = false): Promise<void> {
    isPrefilling.value = true
    try {
      const job = await unwrap(api.GET('/api/v1/jobs/{job_id}', { params: { path: { job_id: jobId } } }))
      source.value = job
      changes.value = route.query.fix === '1' ? (job.failure?.changes ?? []) : []
      if (isNamed) return
      hasChosenPreset.value = job.preset !== null
      isCopiedPreset.value = job.preset !== null
      const asked = draftOfJob(job, t('jobs.launch.cloneName', copyOf(job.name), copyOf(job.name).number))
      Object.assign(draft, withChanges(asked, changes.value))
    } catch (cause) {
      sourceError.value = asApiError(cause)
    } finally {
      isPrefilling.value = false
    }
  }

  /** Another algorithm: parameters that both have keep their turns, the others wait for the way back. */
  function takeRecipe(id: string): void {
    const next = catalogue.recipes.value.find((one) => one.id === id)
    if (next === undefined) return
    parked = carryOver(draft, parked, recipe.value, next)
    if (!hasChosenPreset.value || presetOf(next, draft.preset) === null) suggestPreset(next)
  }

  function chooseRecipe(id: string): void {
    draft.isRecipeChosen = true
    takeRecipe(id)
  }

  /** Rewards that were tried out and are to be used here. */
  function takeRewards(): void {
    const terms = readTerms(route.query.rewards)
    const parameter = recipe.value?.parameters.find((one) => one.type === 'rewards')
    if (terms !== null && parameter !== undefined) draft.params = { ...draft.params, [parameter.name]: terms }
  }

  /** Somebody comes from an environment to train in it, or from a workflow to train it. */
  function takeReferences(): void {
    for (const type of ['environment', 'workflow']) {
      const id = fromQuery(route.query[type])
      const parameter = recipe.value?.parameters.find((one) => one.type === type)
      if (id !== null && parameter !== undefined) draft.params = { ...draft.params, [parameter.name]: id }
    }
  }

  function choosePreset(id: string): void {
    hasChosenPreset.value = true
    isCopiedPreset.value = false
    draft.preset = id
    const preset = recipe.value === null ? null : presetOf(recipe.value, id)
    if (preset !== null && recipe.value !== null) {
      draft.gpus = preset.gpus
      // A turn that the new preset makes anyway is no turn any more.
      const parameters = new Map(recipe.value.parameters.map((parameter) => [parameter.name, parameter]))
      draft.params = Object.fromEntries(
        Object.entries(draft.params).filter(([name, value]) => {
          const parameter = parameters.get(name)
          return parameter === undefined || inheritedValue(parameter, preset) !== value
        }),
      )
    }
  }

  /** A copied job keeps no sizes for another platform; once the platform is known. */
  function dropForeignPreset(): void {
    const machine = platform.data.value
    if (!isCopiedPreset.value || machine === null) return
    isCopiedPreset.value = false
    if (draft.preset === null || suitsPlatform(draft.preset, machine.platform)) return
    draft.preset = null
    hasChosenPreset.value = false
  }

  function suggestPreset(of: Recipe): void {
    const machine = platform.data.value
    if (machine === null || hasChosenPreset.value) return
    // A copied job keeps its size: the preset is what the platform took for it unasked.
    const isCopy = source.value !== null && source.value.recipe === of.id
    const sizes = machine.resources.gpus.flatMap((gpu) => gpu.memory_total_bytes ?? [])
    const gpuBytes = sizes.length === 0 ? null : Math.min(...sizes)
    draft.preset = presetForMachine(of, machine.platform, isCopy ? draft.gpus : machine.slots.total, gpuBytes)
    if (!isCopy) draft.gpus = presetOf(of, draft.preset)?.gpus ?? 1
  }

  function suitedRecipe(recipes: readonly Recipe[], dataset: string | null): string {
    const usable = (choices.datasets.data.value?.items ?? []).filter((one) => one.head !== null)
    if (dataset === null)
      return recipeForAll(
        usable.map((one) => one.format),
        recipes,
        FIRST_RECIPE,
      )
    return recipeForFormat(usable.find((one) => one.id === dataset)?.format, recipes) ?? FIRST_RECIPE
  }

  function fillRecipe(): void {
    const [recipes, datasets, failure] = [
      catalogue.recipes.value,
      choices.datasets.data.value,
      choices.datasets.error.value,
    ]
    if (recipes.length === 0 || isPrefilling.value) return
    if (draft.recipe === '') {
      const from = fromQuery(route.query.dataset)
      const asked = fromQuery(route.query.recipe)
      // Without a recipe, the rows say what suits them, as soon as they are known; what is scored needs one that scores.
      const isScored = from === null && ['rewards', 'environment', 'workflow'].some((name) => name in route.query)
      if (asked === null && !isScored && datasets === null && failure === null) return
      const wanted = asked ?? (isScored ? FIRST_RECIPE : suitedRecipe(recipes, from))
      draft.isRecipeChosen = asked !== null || isScored
      takeRecipe(recipes.find((one) => one.id === wanted)?.id ?? recipes[0]?.id ?? '')
      takeRewards()
      takeReferences()
    } else if (recipe.value !== null) {
      dropForeignPreset()
      if (draft.preset === null) suggestPreset(recipe.value)
    }
  }

  /** A choice of one is no choice. */
  function fillData(): void {
    if (isPrefilling.value) return
    const [models, datasets] = [choices.modelChoices.value, choices.datasetChoices.value]
    const wantedModel = fromQuery(route.query.model)
    const wantedDataset = fromQuery(route.query.dataset)
    if (draft.model === null) draft.model = pick(models, wantedModel)
    if (draft.dataset === null) takeDataset(pick(datasets, wantedDataset), wantedDataset)
  }

  /** The address may say which version and split of it, too. */
  function takeDataset(picked: string | null, wanted: string | null): void {
    draft.dataset = picked
    if (picked === null || picked !== wanted) return
    draft.datasetVersion = fromQuery(route.query.version)
    draft.datasetSplit = fromQuery(route.query.split)
    draft.columns = readColumns(route.query.columns)
    draft.validationSplit = fromQuery(route.query.validation)
  }

  /** What the address asks for, also where it needs a conversion; else the only one that fits as it is. */
  function pick(list: readonly Choice[], wanted: string | null): string | null {
    const asked = list.find((choice) => choice.value === wanted && !choice.disabled)
    const fitting = list.filter((choice) => choice.fits)
    return asked?.value ?? (fitting.length === 1 ? (fitting[0]?.value ?? null) : null)
  }

  const cloneId = fromQuery(route.query.clone)
  if (cloneId !== null) void prefill(cloneId, kept !== null)
  // The catalogue, the platform's state and the job to copy arrive in any order.
  watch([catalogue.recipes, platform.data, isPrefilling, choices.datasets.data, choices.datasets.error], fillRecipe, {
    immediate: true,
  })
  watch([choices.modelChoices, choices.datasetChoices, isPrefilling], fillData, { immediate: true })

  /** Everything that fills the form has been here, or will not come. */
  const isSettled = computed(
    () =>
      catalogue.recipes.value.length > 0 &&
      !isPrefilling.value &&
      [platform, choices.models, choices.datasets].every(
        ({ data, error }) => data.value !== null || error.value !== null,
      ),
  )

  /** The form as the address opens it. */
  async function begin(): Promise<void> {
    isPrefilling.value = true
    hasChosenPreset.value = isCopiedPreset.value = false
    parked = emptyParked()
    Object.assign(draft, emptyDraft())
    // What goes with the old data has to go before the new data come.
    await nextTick()
    if (cloneId !== null) await prefill(cloneId)
    isPrefilling.value = false
    fillRecipe()
    fillData()
  }

  // How to read the rows was said of one dataset and one form of training.
  watch([() => draft.dataset, () => recipe.value?.row_format], ([dataset, form], [oldDataset, oldForm]) => {
    const isFirst = oldDataset === null || oldForm === undefined
    if (isFirst || (dataset === oldDataset && form === oldForm)) return
    setReading(draft, 'training', { format: null, columns: {} })
    if (form !== oldForm || draft.validationDataset === null)
      setReading(draft, 'validation', { format: null, columns: {} })
  })

  const dataFormat = computed(
    () => choices.datasets.data.value?.items.find((one) => one.id === draft.dataset)?.format ?? null,
  )
  /** What the rows suggest, where they suggest anything. */
  const suitedId = computed(() => recipeForFormat(dataFormat.value, catalogue.recipes.value))

  // Other rows, another recipe, until somebody has chosen one.
  watch(
    () => draft.dataset,
    () => {
      if (draft.isRecipeChosen || isPrefilling.value || suitedId.value === null) return
      if (draft.recipe !== '' && draft.recipe !== suitedId.value) takeRecipe(suitedId.value)
    },
  )

  // A version belongs to one dataset; what is there before the first choice came with it.
  watch(
    () => draft.dataset,
    (_, old) => {
      if (old === null) return
      draft.datasetVersion = null
      draft.datasetSplit = null
      if (draft.validationDataset === null) draft.validationSplit = null
    },
  )
  watch(
    () => draft.validationDataset,
    (_, old) => {
      if (isPrefilling.value || (old === null && draft.validationVersion !== null)) return
      draft.validationVersion = null
      draft.validationSplit = null
      setReading(draft, 'validation', { format: null, columns: {} })
    },
  )

  const suggestedName = computed(() => {
    const dataset = choices.datasetChoices.value.find((choice) => choice.value === draft.dataset)
    return [draft.recipe === '' ? t('jobs.launch.job') : draft.recipe, dataset?.label]
      .filter((part) => part !== undefined)
      .join(' · ')
      .slice(0, 200)
  })

  return {
    draft,
    address,
    kept,
    isSettled,
    begin,
    recipe,
    dataFormat,
    suitedId,
    catalogue,
    choices,
    slots,
    source,
    changes,
    sourceError,
    isPrefilling,
    suggestedName,
    chooseRecipe,
    choosePreset,
  }
}
