/** What other domains use of this one. */
export { checkpointArchive } from './card'
export { default as CheckpointPicker } from './CheckpointPicker.vue'
export { default as ModelSelect } from './ModelSelect.vue'
export { default as ModelsNav } from './ModelsNav.vue'
export { writesText } from './types'
export { useReadyModels } from './useReadyModels'
