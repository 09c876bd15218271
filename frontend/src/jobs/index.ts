/** What other domains use of this one. */
export { default as WorkflowDialog } from './launch/agent/WorkflowDialog.vue'
export type { ParameterValue } from './launch/draft'
export { default as FitRemedies } from './launch/fit/FitRemedies.vue'
export { default as RevisionFields } from './launch/revision/RevisionFields.vue'
export { default as BaselineDifference } from './list/BaselineDifference.vue'
export { type Spark, useSparklines } from './list/useSparklines'
export { toCurve } from './live/curveBook'
export { default as FailurePanel } from './page/FailurePanel.vue'
export { default as ResultView } from './page/rollouts/episodes/ResultView.vue'
export { secondsText } from './page/rollouts/episodes/seconds'
export { useStartText } from './queue/useStartText'
export { default as JobsNav } from './shared/JobsNav.vue'
export { runTimeS } from './shared/runTime'
export { useMetricTitle } from './shared/useMetricTitle'
export { useRecipeNames } from './shared/useRecipeNames'
export { useRecipes } from './shared/useRecipes'
export {
  type DataOffer,
  isActive,
  type Issue,
  JOB_STATES,
  type JobState,
  type MissingRole,
  type Parameter,
  type Recipe,
} from './types'
