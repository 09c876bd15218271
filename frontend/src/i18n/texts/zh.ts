/** Texts in Chinese that a job's page and the shell need; those of the other domains are in `zhRest.ts`. */
import auth from '@/auth/locales/zh'
import charts from '@/charts/locales/zh'
import evaluations from '@/evaluations/locales/zh'
import jobs from '@/jobs/locales/zh'
import layout from '@/layout/locales/zh'
import monitoring from '@/monitoring/locales/zh'
import overview from '@/overview/locales/zh'
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
  evaluations,
  jobs,
  layout,
  monitoring,
  overview,
  savedViews,
  sweeps,
}
