/** All texts in Chinese: every domain brings its own; here they meet under the domain's name. */
import auth from '@/auth/locales/zh'
import charts from '@/charts/locales/zh'
import datasets from '@/datasets/locales/zh'
import environments from '@/environments/locales/zh'
import evaluations from '@/evaluations/locales/zh'
import jobPipelines from '@/jobPipelines/locales/zh'
import jobs from '@/jobs/locales/zh'
import layout from '@/layout/locales/zh'
import models from '@/models/locales/zh'
import overview from '@/overview/locales/zh'
import pipelines from '@/pipelines/locales/zh'
import playground from '@/playground/locales/zh'
import registry from '@/registry/locales/zh'
import reports from '@/reports/locales/zh'
import rewards from '@/rewards/locales/zh'
import savedViews from '@/savedViews/locales/zh'
import sweeps from '@/sweeps/locales/zh'

import common from '../locales/zh'

// Sentences of the API, by code; the API itself speaks English.
export { fillIn, zhByCause, zhByCode } from '../apiErrors'
export { zhByDataProblem, zhByRowProblem, zhByUnusableRow } from '../dataTexts'
export { zhByIssue } from '../issueTexts'
export { toChinese } from '../serverTexts'

export const messages = {
  ...common,
  auth,
  charts,
  datasets,
  environments,
  evaluations,
  jobPipelines,
  jobs,
  layout,
  models,
  overview,
  pipelines,
  playground,
  registry,
  reports,
  rewards,
  savedViews,
  sweeps,
}
