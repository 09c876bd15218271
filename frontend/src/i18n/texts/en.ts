/** All texts in English: every domain brings its own; here they meet under the domain's name. */
import auth from '@/auth/locales/en'
import charts from '@/charts/locales/en'
import datasets from '@/datasets/locales/en'
import environments from '@/environments/locales/en'
import evaluations from '@/evaluations/locales/en'
import jobPipelines from '@/jobPipelines/locales/en'
import jobs from '@/jobs/locales/en'
import layout from '@/layout/locales/en'
import models from '@/models/locales/en'
import overview from '@/overview/locales/en'
import pipelines from '@/pipelines/locales/en'
import playground from '@/playground/locales/en'
import registry from '@/registry/locales/en'
import reports from '@/reports/locales/en'
import rewards from '@/rewards/locales/en'
import savedViews from '@/savedViews/locales/en'
import sweeps from '@/sweeps/locales/en'

import common from '../locales/en'

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
