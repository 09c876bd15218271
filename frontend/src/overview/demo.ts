/** The demo: the starter model and sample data are added, then a pipeline of jobs trains on them. */
import { api, unwrap } from '@/api/client'
import { ApiError } from '@/api/errors'
import type { components } from '@/api/schema'
import type { Locale } from '@/i18n'
import { draftOfTemplate, emptyDraft, type JobPipelineCreate, type Template, toRequest } from '@/jobPipelines'

type Dataset = components['schemas']['DatasetRead']
type Model = components['schemas']['ModelRead']

export const DEMO = 'demo'
const POLL_MS = 1000

export type DemoStep = 'parts' | 'jobs'

/** Add what is missing and start the jobs; the id of their pipeline. Each part is added once: a second try goes on. */
export async function startDemo(language: Locale, note: (step: DemoStep) => void): Promise<string> {
  const templates = await unwrap(api.GET('/api/v1/job-pipelines/templates'))
  const template = templates.items.find((one) => one.id === DEMO)
  if (template?.model == null)
    throw new ApiError({ status: 0, code: 'not_found', message: 'This platform has no demo.' })
  note('parts')
  const [model, datasets] = await Promise.all([addModel(template.model), addSamples(template)])
  note('jobs')
  const body = { ...requestOf(template, language, model, datasets), start: true }
  return (await unwrap(api.POST('/api/v1/job-pipelines', { body }))).id
}

/** The template with a model and with datasets by the names of their samples. */
export function requestOf(
  template: Template,
  language: Locale,
  model: string,
  datasets: ReadonlyMap<string, string>,
): JobPipelineCreate {
  const find = (sample: string | null | undefined) => (sample == null ? null : (datasets.get(sample) ?? null))
  const stages = draftOfTemplate(template, language).map((stage, at) => ({
    ...stage,
    dataset: find(template.stages[at]?.sample),
    rest: { validation_dataset: find(template.stages[at]?.validation_sample) },
  }))
  return toRequest({ ...emptyDraft(), name: template.title[language], baseModel: model, stages })
}

async function addModel(name: string): Promise<string> {
  const known = await unwrap(api.GET('/api/v1/models', { params: { query: { text: name } } }))
  const found = known.items.find(
    (one) => one.source.kind === 'catalogue' && one.source.name === name && one.state !== 'failed',
  )
  const model =
    found ??
    (await unwrap(
      api.POST('/api/v1/models', {
        body: { name: freeName(name, known.items), description: '', source: { kind: 'catalogue', name } },
      }),
    ))
  await untilReady(model, () =>
    unwrap(api.GET('/api/v1/models/{model_id}', { params: { path: { model_id: model.id } } })),
  )
  return model.id
}

/** The name, or with a number where a failed download or another model bears it. */
function freeName(name: string, models: readonly Model[]): string {
  const taken = new Set(models.map((one) => one.name))
  let free = name
  for (let number = 2; taken.has(free); number += 1) free = `${name}-${number}`
  return free
}

async function addSamples(template: Template): Promise<Map<string, string>> {
  const names = new Set(
    template.stages.flatMap((stage) => [stage.sample, stage.validation_sample]).filter((name) => name != null),
  )
  const added = [...names].map(async (name): Promise<[string, string]> => {
    const dataset = await unwrap(
      api.POST('/api/v1/datasets/samples/{sample_name}', { params: { path: { sample_name: name } } }),
    )
    await untilReady(dataset, () =>
      unwrap(api.GET('/api/v1/datasets/{dataset_id}', { params: { path: { dataset_id: dataset.id } } })),
    )
    return [name, dataset.id]
  })
  return new Map(await Promise.all(added))
}

/** Ask until it is ready; throws with its reason where it has failed. */
async function untilReady<T extends Model | Dataset>(first: T, ask: () => Promise<T>): Promise<void> {
  for (let now = first; now.state !== 'ready'; now = await ask()) {
    if (now.state === 'failed') throw failure(now)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

function failure(part: Model | Dataset): ApiError {
  const reason = ('state_reason' in part ? part.state_reason : part.task?.reason) ?? '?'
  return new ApiError({
    status: 0,
    code: 'demo_part_failed',
    message: `“${part.name}” could not be added: ${reason}`,
    details: { name: part.name, reason },
  })
}
