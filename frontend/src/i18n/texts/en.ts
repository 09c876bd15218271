/** Texts in English that a job's page and the shell need; those of the other domains are in `enRest.ts`. */
import auth from '@/auth/locales/en'
import charts from '@/charts/locales/en'
import evaluations from '@/evaluations/locales/en'
import jobs from '@/jobs/locales/en'
import layout from '@/layout/locales/en'
import monitoring from '@/monitoring/locales/en'
import overview from '@/overview/locales/en'
import savedViews from '@/savedViews/locales/en'
import sweeps from '@/sweeps/locales/en'

import common from '../locales/en'

export const messages = {
  ...common,
  auth,
  charts,
  evaluations,
  jobs,
  layout,
  monitoring,
  overview,
  savedViews,
  sweeps,
}
