/** Texts in Chinese of the domains that a job's page does without, each under its domain's name. */
import datasets from '@/datasets/locales/zh'
import environments from '@/environments/locales/zh'
import jobPipelines from '@/jobPipelines/locales/zh'
import models from '@/models/locales/zh'
import pipelines from '@/pipelines/locales/zh'
import playground from '@/playground/locales/zh'
import registry from '@/registry/locales/zh'
import reports from '@/reports/locales/zh'
import rewards from '@/rewards/locales/zh'

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
