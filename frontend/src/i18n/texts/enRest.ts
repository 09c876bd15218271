/** Texts in English of the domains that a job's page does without, each under its domain's name. */
import datasets from '@/datasets/locales/en'
import environments from '@/environments/locales/en'
import jobPipelines from '@/jobPipelines/locales/en'
import models from '@/models/locales/en'
import pipelines from '@/pipelines/locales/en'
import playground from '@/playground/locales/en'
import registry from '@/registry/locales/en'
import reports from '@/reports/locales/en'
import rewards from '@/rewards/locales/en'

export const messages = {
  datasets,
  environments,
  jobPipelines,
  models,
  pipelines,
  playground,
  registry,
  reports,
  rewards,
}
