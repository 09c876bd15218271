/** The y scale of each chart of a job: in the address, so that it outlives a change of the tab and a link shows the same. */
import { computed } from 'vue'
import { useRoute, useRouter } from 'vue-router'

import { readScales, USUAL_SCALE, writeScales, type YScale } from '@/charts/yScale'

export function useScales() {
  const route = useRoute()
  const router = useRouter()
  const scales = computed(() => readScales([route.query.scale].flat()))

  function scaleOf(key: string): YScale {
    return scales.value.get(key) ?? USUAL_SCALE
  }

  function setScale(key: string, scale: YScale): void {
    const next = writeScales(new Map(scales.value).set(key, scale))
    void router.replace({ query: { ...route.query, scale: next.length > 0 ? next : undefined } })
  }

  return { scaleOf, setScale }
}
