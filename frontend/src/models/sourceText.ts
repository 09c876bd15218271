/** Where a model is from, in a few words. */
import { useI18n } from 'vue-i18n'

import { formatStep } from '@/format/numbers'
import type { ModelSource } from './types'

export function useSourceText() {
  const { t } = useI18n()

  return function sourceText(source: ModelSource): string {
    switch (source.kind) {
      case 'local':
        return source.path
      case 'catalogue':
        return source.name
      case 'hub':
        return source.file ? `${source.repo_id} · ${source.file}` : source.repo_id
      case 'checkpoint':
      case 'export':
        return `${source.job_id} · ${t('models.source.checkpointOf', { step: formatStep(source.step) })}`
    }
  }
}
