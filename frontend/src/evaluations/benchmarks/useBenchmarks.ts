/** The catalogue of benchmarks, fresh while files are being brought, and the order to bring them. */
import { ref } from 'vue'
import { useI18n } from 'vue-i18n'

import { api, unwrap } from '@/api/client'
import { useResource } from '@/api/useResource'
import { currentLocale } from '@/i18n'
import { useToast } from '@/ui/useToast'

import type { Benchmark } from '../types'

const INSTALLING_MS = 1_500

export function isOnItsWay(benchmark: Benchmark): boolean {
  return benchmark.state === 'pending' || benchmark.state === 'installing'
}

export function useBenchmarks() {
  const { t } = useI18n()
  const toast = useToast()
  const asked = ref<string | null>(null)
  const resource = useResource((signal) => unwrap(api.GET('/api/v1/benchmarks', { signal })), {
    intervalMs: (read) => (read !== null && read.items.some(isOnItsWay) ? INSTALLING_MS : null),
  })

  async function install(benchmark: Benchmark): Promise<void> {
    if (asked.value !== null) return
    asked.value = benchmark.name
    try {
      await unwrap(
        api.POST('/api/v1/benchmarks/{benchmark_name}/install', {
          params: { path: { benchmark_name: benchmark.name } },
        }),
      )
      await resource.refresh()
      toast.success(t('evaluations.benchmarks.asked', { title: benchmark.title[currentLocale()] }))
    } catch (cause) {
      toast.failure(cause)
    } finally {
      asked.value = null
    }
  }

  return { resource, install, asked }
}
