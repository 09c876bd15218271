/** Every domain brings its own texts; here they meet under the domain's name. */
import authEn from '@/auth/locales/en'
import authZh from '@/auth/locales/zh'
import chartsEn from '@/charts/locales/en'
import chartsZh from '@/charts/locales/zh'
import datasetsEn from '@/datasets/locales/en'
import datasetsZh from '@/datasets/locales/zh'
import environmentsEn from '@/environments/locales/en'
import environmentsZh from '@/environments/locales/zh'
import evaluationsEn from '@/evaluations/locales/en'
import evaluationsZh from '@/evaluations/locales/zh'
import jobPipelinesEn from '@/jobPipelines/locales/en'
import jobPipelinesZh from '@/jobPipelines/locales/zh'
import jobsEn from '@/jobs/locales/en'
import jobsZh from '@/jobs/locales/zh'
import layoutEn from '@/layout/locales/en'
import layoutZh from '@/layout/locales/zh'
import modelsEn from '@/models/locales/en'
import modelsZh from '@/models/locales/zh'
import overviewEn from '@/overview/locales/en'
import overviewZh from '@/overview/locales/zh'
import pipelinesEn from '@/pipelines/locales/en'
import pipelinesZh from '@/pipelines/locales/zh'
import playgroundEn from '@/playground/locales/en'
import playgroundZh from '@/playground/locales/zh'
import registryEn from '@/registry/locales/en'
import registryZh from '@/registry/locales/zh'
import reportsEn from '@/reports/locales/en'
import reportsZh from '@/reports/locales/zh'
import rewardsEn from '@/rewards/locales/en'
import rewardsZh from '@/rewards/locales/zh'
import sweepsEn from '@/sweeps/locales/en'
import sweepsZh from '@/sweeps/locales/zh'

import commonEn from './locales/en'
import commonZh from './locales/zh'

export const messages = {
  en: {
    ...commonEn,
    auth: authEn,
    charts: chartsEn,
    datasets: datasetsEn,
    environments: environmentsEn,
    evaluations: evaluationsEn,
    jobPipelines: jobPipelinesEn,
    jobs: jobsEn,
    layout: layoutEn,
    models: modelsEn,
    overview: overviewEn,
    pipelines: pipelinesEn,
    playground: playgroundEn,
    registry: registryEn,
    reports: reportsEn,
    rewards: rewardsEn,
    sweeps: sweepsEn,
  },
  zh: {
    ...commonZh,
    auth: authZh,
    charts: chartsZh,
    datasets: datasetsZh,
    environments: environmentsZh,
    evaluations: evaluationsZh,
    jobPipelines: jobPipelinesZh,
    jobs: jobsZh,
    layout: layoutZh,
    models: modelsZh,
    overview: overviewZh,
    pipelines: pipelinesZh,
    playground: playgroundZh,
    registry: registryZh,
    reports: reportsZh,
    rewards: rewardsZh,
    sweeps: sweepsZh,
  },
}
