/** Running jobs by whether they hold slots: evaluations, exports and endpoints hold none on a CPU. */
interface Running {
  resources: { gpus: number }
}

export function countRunning(jobs: readonly Running[]): { withSlot: number; withoutSlot: number } {
  const withoutSlot = jobs.filter((job) => job.resources.gpus === 0).length
  return { withSlot: jobs.length - withoutSlot, withoutSlot }
}
