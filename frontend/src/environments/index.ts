/** What other domains use of this one. */
export { type Environment, isAwaited, isOver } from './types'
export { useKinds } from './useKinds'
